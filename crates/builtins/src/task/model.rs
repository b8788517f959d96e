//! The types of the task list.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the states are fixed by the specification"
)]
pub enum TaskStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

impl TaskStatus {
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

    /// Returns the state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the task is completed or failed.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// S002-30: written by hand, for a plain `enum`. Derived, the doc comments of the variants would
/// make it a `oneOf` of constants.
impl JsonSchema for TaskStatus {
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

/// A task. Times are in UTC, in RFC 3339 with milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Task {
    /// The task's id. Ids sort by age.
    pub id: String,
    /// The parent, of which this task is a subtask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// The work to be done.
    pub description: String,
    /// Background information for the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The priority, from 1, the most urgent, to 5.
    pub priority: u8,
    /// The state of the task.
    pub status: TaskStatus,
    /// The result of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// When the task was created.
    pub created_at: String,
    /// When the task was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When the task was completed or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// When the task was last changed.
    pub updated_at: String,
    /// The ids of the tasks that must be completed before this one.
    pub blocked_by: Vec<String>,
    /// The owner of the claim, who works on the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// When the claim expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<String>,
}

/// The short form of a task, which is also the result of creating one (S002-21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Summary {
    /// The task's id.
    pub id: String,
    /// The work to be done.
    pub description: String,
    /// The state of the task.
    pub status: TaskStatus,
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
