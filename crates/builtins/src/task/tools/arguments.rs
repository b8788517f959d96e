//! Arguments of the tools. The doc comments are the descriptions in the schemas, which models read.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::task::model::TaskStatus;
use crate::task::tasks::{NewTask, TaskFilter, Update};

/// The maximum number of tasks in one list.
pub(in crate::task) const MAX_LISTED: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// Task description
    #[schemars(length(min = 1))]
    description: String,
    /// The parent, of which the new task is a subtask
    parent_id: Option<String>,
    /// The priority, from 1, the most urgent, to 5
    #[serde(default = "normal_priority")]
    #[schemars(range(min = 1, max = 5))]
    priority: u8,
    /// Background information for the work
    context: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Filtered {
    /// Only tasks in this state
    status: Option<TaskStatus>,
    /// Only subtasks of this task
    parent_id: Option<String>,
    /// The maximum number of tasks
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
    /// The work to be done
    #[schemars(length(min = 1))]
    description: Option<String>,
    /// The priority, from 1, the most urgent, to 5
    #[schemars(range(min = 1, max = 5))]
    priority: Option<u8>,
    /// The state of the task
    status: Option<TaskStatus>,
    /// Background information for the work; an empty text removes it
    context: Option<String>,
    /// The result of the work; an empty text removes it
    result: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// The task's id
    pub(super) id: String,
    /// Whether to delete its subtasks, and their subtasks, too
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
    /// The maximum number of tasks
    #[serde(default = "few")]
    #[schemars(range(min = 1, max = MAX_LISTED))]
    pub(super) limit: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The task's id; if left out, the first task that is ready
    pub(super) id: Option<String>,
    /// The name of the owner, which no other agent has
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner: String,
    /// The duration of the claim, in seconds
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 86_400))]
    lease_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Renew {
    /// The task's id
    pub(super) id: String,
    /// The owner of the claim
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner: String,
    /// The new duration of the claim, in seconds from now
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 86_400))]
    lease_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// The task's id
    pub(super) id: String,
    /// The owner of the claim
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

impl From<Filtered> for TaskFilter {
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
