//! What a task is.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the states are fixed by the founding document"
)]
pub enum Status {
    /// Nobody has begun.
    Pending,
    /// Somebody works on it.
    InProgress,
    /// Done, and well.
    Completed,
    /// Given up.
    Failed,
}

impl Status {
    /// Every state, in the order in which a task goes through them.
    pub const ALL: [Self; 4] = [
        Self::Pending,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
    ];

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether no more work is done.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// S002-30: a plain `enum`, which the comments above would otherwise make a choice of constants.
impl JsonSchema for Status {
    fn schema_name() -> Cow<'static, str> {
        "Status".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str) })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Something to be done. Times are in UTC, as RFC 3339 writes them, with milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Task {
    /// The task's id. Ids sort by age.
    pub id: String,
    /// The task that this is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// What is to be done.
    pub description: String,
    /// What one needs to know to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// How urgent it is: 1 is the most, 5 the least.
    pub priority: u8,
    /// How far it is.
    pub status: Status,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// When work on it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it was completed or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// When it was last changed.
    pub updated_at: String,
    /// The tasks that must be completed before it.
    pub blocked_by: Vec<String>,
    /// Who works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// Until when it is theirs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<String>,
}

/// A task in short, and all that is said of a new one (S002-21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Summary {
    /// The task's id.
    pub id: String,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub status: Status,
}

impl From<Task> for Summary {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            description: task.description,
            status: task.status,
        }
    }
}
