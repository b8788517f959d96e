//! Errors of the task list.

use plexus_mcp_core::{Fault, ToolError};
use plexus_mcp_store::{StoreError, rusqlite};

use super::model::TaskStatus;
use crate::store_errors::{log_store_error, store_fault};

/// The owner of the store, for log messages.
const STORE_OWNER: &str = "the task list";

/// Why an operation on the task list failed. A failed operation changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// No task has this id.
    #[error("task not found: {0}")]
    NotFound(String),
    /// The description is empty or blank.
    #[error("a task needs a description")]
    Undescribed,
    /// The task has subtasks, and the caller did not ask to delete them too.
    #[error(
        "task {id} has {subtasks} {}; to delete them too, pass cascade: true",
        if *subtasks == 1 { "subtask" } else { "subtasks" }
    )]
    HasSubtasks {
        /// The id of the task.
        id: String,
        /// The number of subtasks.
        subtasks: u64,
    },
    /// A task cannot be its own blocker.
    #[error("a task cannot block itself: {0}")]
    BlocksItself(String),
    /// The blocker would make a cycle: two tasks would wait for each other, directly or indirectly.
    #[error("task {blocked_by_id} already waits for {task_id}, so it cannot block it")]
    Cycle {
        /// The id of the task that was to wait.
        task_id: String,
        /// The id of the task that it was to wait for.
        blocked_by_id: String,
    },
    /// The task does not have the blocker that was to be removed.
    #[error("task {task_id} is not blocked by {blocked_by_id}")]
    NotBlockedBy {
        /// The id of the task.
        task_id: String,
        /// The id of the task that is not its blocker.
        blocked_by_id: String,
    },
    /// No task can be claimed.
    #[error("no task is ready to be worked on")]
    NothingReady,
    /// The task has blockers that are not completed.
    #[error("task {id} is blocked by {}", blockers.join(", "))]
    Blocked {
        /// The id of the task.
        id: String,
        /// The ids of its open blockers.
        blockers: Vec<String>,
    },
    /// The task is completed or failed, or is in progress without a claim.
    #[error("task {id} is {} and cannot be claimed", status.as_str())]
    NotClaimable {
        /// The id of the task.
        id: String,
        /// The state of the task.
        status: TaskStatus,
    },
    /// Another owner has claimed the task.
    #[error("task {id} is claimed by {owner:?} until {until}")]
    Claimed {
        /// The id of the task.
        id: String,
        /// The owner of the claim.
        owner: String,
        /// When the claim expires, in RFC 3339.
        until: String,
    },
    /// The caller has no claim on the task, or its claim was taken over.
    #[error("task {id} is not claimed by {owner:?}")]
    NotClaimedBy {
        /// The id of the task.
        id: String,
        /// The caller, by the name that it gave.
        owner: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TaskError {
    /// Converts the error for a caller that reads the resource `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::NotFound(_) => Fault::ResourceNotFound(uri),
            Self::Store(error) => store_fault(&error, STORE_OWNER),
            other => Fault::Internal(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for TaskError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// The text is that of the specification: `error: task not found: task_xyz` (S002-22).
impl From<TaskError> for ToolError {
    fn from(error: TaskError) -> Self {
        if let TaskError::Store(error) = &error {
            log_store_error(error, STORE_OWNER);
        }
        Self::failed(format_args!("error: {error}"))
    }
}
