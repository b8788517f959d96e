//! What can go wrong with tasks.

use plexus_service::{Fault, ToolError};
use plexus_store::{StoreError, rusqlite};

use super::model::Status;
use crate::trouble::{log, unreadable};

/// Whose store it is that fails.
const STORE: &str = "the task list";

/// Why a task list did not do what it was asked for. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// There is no such task.
    #[error("task not found: {0}")]
    NotFound(String),
    /// A description with nothing to read in it.
    #[error("a task needs a description")]
    Undescribed,
    /// Who deletes a task must say that its subtasks go with it.
    #[error(
        "task {id} has {subtasks} {}; to delete them too, pass cascade: true",
        if *subtasks == 1 { "subtask" } else { "subtasks" }
    )]
    HasSubtasks {
        /// The task.
        id: String,
        /// How many there are.
        subtasks: u64,
    },
    /// A task cannot wait for itself.
    #[error("a task cannot block itself: {0}")]
    BlocksItself(String),
    /// Two tasks would wait for each other, perhaps by way of others.
    #[error("task {blocked_by_id} already waits for {task_id}, so it cannot block it")]
    Cycle {
        /// Which was to wait.
        task_id: String,
        /// For which.
        blocked_by_id: String,
    },
    /// There is no such blocker to remove.
    #[error("task {task_id} is not blocked by {blocked_by_id}")]
    NotBlockedBy {
        /// Which does not wait.
        task_id: String,
        /// For which.
        blocked_by_id: String,
    },
    /// Nothing can be claimed.
    #[error("no task is ready to be worked on")]
    NothingReady,
    /// The task waits for others.
    #[error("task {id} is blocked by {}", blockers.join(", "))]
    Blocked {
        /// The task.
        id: String,
        /// What it waits for.
        blockers: Vec<String>,
    },
    /// The task is over, or somebody works on it without a claim.
    #[error("task {id} is {} and cannot be claimed", status.as_str())]
    NotClaimable {
        /// The task.
        id: String,
        /// Its state.
        status: Status,
    },
    /// Somebody else works on the task.
    #[error("task {id} is claimed by {owner:?} until {until}")]
    Claimed {
        /// The task.
        id: String,
        /// Who works on it.
        owner: String,
        /// Until when it is theirs.
        until: String,
    },
    /// The caller's claim has ended, or there never was one.
    #[error("task {id} is not claimed by {owner:?}")]
    NotClaimedBy {
        /// The task.
        id: String,
        /// Who thought so.
        owner: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TaskError {
    /// For a caller that wanted to read `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::NotFound(_) => Fault::ResourceNotFound(uri),
            Self::Store(error) => unreadable(&error, STORE),
            other => Fault::Internal(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for TaskError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Said as the founding document says it: `error: task not found: task_xyz` (S002-22).
impl From<TaskError> for ToolError {
    fn from(error: TaskError) -> Self {
        if let TaskError::Store(error) = &error {
            log(error, STORE);
        }
        Self::failed(format_args!("error: {error}"))
    }
}
