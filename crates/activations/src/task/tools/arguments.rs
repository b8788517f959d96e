//! What the tools are given. Models read the comments.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::task::model::Status;
use crate::task::tasks::{Filter, NewTask, Update};

/// The most tasks that are listed at once.
pub(in crate::task) const MAX_LISTED: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// Task description
    #[schemars(length(min = 1))]
    description: String,
    /// The task that this is a part of
    parent_id: Option<String>,
    /// From 1, the most urgent, to 5
    #[serde(default = "normal_priority")]
    #[schemars(range(min = 1, max = 5))]
    priority: u8,
    /// What one needs to know to do it
    context: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Filtered {
    /// Only tasks in this state
    status: Option<Status>,
    /// Only parts of this task
    parent_id: Option<String>,
    /// At most so many
    #[serde(default = "many")]
    #[schemars(range(min = 1, max = MAX_LISTED))]
    limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    /// The task's id
    pub(super) id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Updated {
    /// The task's id
    id: String,
    /// What is to be done
    #[schemars(length(min = 1))]
    description: Option<String>,
    /// From 1, the most urgent, to 5
    #[schemars(range(min = 1, max = 5))]
    priority: Option<u8>,
    /// How far it is
    status: Option<Status>,
    /// What one needs to know to do it; empty for nothing
    context: Option<String>,
    /// What came of it; empty for nothing
    result: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// The task's id
    pub(super) id: String,
    /// Whether to delete its subtasks, and theirs, too
    #[serde(default)]
    pub(super) cascade: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Blocker {
    /// The task that waits
    pub(super) task_id: String,
    /// The task that it waits for
    pub(super) blocked_by_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockersOf {
    /// The task that waits
    pub(super) task_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    /// At most so many
    #[serde(default = "few")]
    #[schemars(range(min = 1, max = MAX_LISTED))]
    pub(super) limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The task's id; if left out, the first task that is ready
    pub(super) id: Option<String>,
    /// Who works on it: a name that no other agent has
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner: String,
    /// For how many seconds it is theirs alone
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 86_400))]
    lease_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Renew {
    /// The task's id
    pub(super) id: String,
    /// Who claimed it
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner: String,
    /// For how many seconds from now it is theirs alone
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 86_400))]
    lease_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// The task's id
    pub(super) id: String,
    /// Who claimed it
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner: String,
}

impl Claim {
    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }
}

impl Renew {
    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }
}

impl From<Create> for NewTask {
    fn from(arguments: Create) -> Self {
        Self {
            description: arguments.description,
            parent_id: arguments.parent_id,
            priority: arguments.priority,
            context: arguments.context,
        }
    }
}

impl From<Filtered> for Filter {
    fn from(arguments: Filtered) -> Self {
        Self {
            status: arguments.status,
            parent_id: arguments.parent_id,
            limit: arguments.limit,
        }
    }
}

impl From<Updated> for (String, Update) {
    fn from(arguments: Updated) -> Self {
        let update = Update {
            description: arguments.description,
            priority: arguments.priority,
            status: arguments.status,
            context: arguments.context,
            result: arguments.result,
        };
        (arguments.id, update)
    }
}

fn normal_priority() -> u8 {
    3
}

fn many() -> u32 {
    100
}

fn few() -> u32 {
    10
}

fn five_minutes() -> u32 {
    300
}
