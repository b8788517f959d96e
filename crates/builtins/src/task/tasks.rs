//! [`Tasks`], which reads and changes the task list.

mod blockers;
mod change;
mod claims;

use std::sync::Arc;

use jiff::Timestamp;
use plexus_mcp_core::LocalService;
use plexus_mcp_store::Store;
use plexus_mcp_store::rusqlite::Connection;

use super::error::TaskError;
use super::model::{Task, TaskStatus};
use super::tables::{self, ids};
use crate::notifying_store::{self, Clock, NotifyingStore};

/// A write transaction on the task list.
type WriteTransaction<'a> = notifying_store::WriteTransaction<'a, Tasks>;

/// A list of tasks, which several agents, people and processes may share. Cheap to clone.
///
/// Every method that writes is atomic: it makes all of its changes or none. If its future is dropped
/// before the transaction starts, nothing is changed; afterwards, the transaction still completes.
#[derive(Debug, Clone)]
pub struct Tasks {
    store: NotifyingStore,
}

/// A task to be created.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct NewTask {
    /// The work to be done.
    pub description: String,
    /// The parent, of which the new task is a subtask.
    pub parent_id: Option<String>,
    /// The priority, from 1, the most urgent, to 5.
    pub priority: u8,
    /// Background information for the work.
    pub context: Option<String>,
}

/// Selects the tasks to list.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct TaskFilter {
    /// Only tasks in this state.
    pub status: Option<TaskStatus>,
    /// Only subtasks of this task.
    pub parent_id: Option<String>,
    /// The maximum number of tasks.
    pub limit: u32,
}

/// The result of listing tasks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListedTasks {
    /// The tasks, the most urgent first and then the newest, up to the limit and to the maximum size
    /// of a response.
    pub tasks: Vec<Task>,
    /// The number of all tasks that match the filter.
    pub total: u64,
}

/// Changes to a task. A member that is `None` stays as it is.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct Update {
    /// The work to be done.
    pub description: Option<String>,
    /// The priority, from 1, the most urgent, to 5.
    pub priority: Option<u8>,
    /// The state of the task.
    pub status: Option<TaskStatus>,
    /// Background information. An empty text removes it.
    pub context: Option<String>,
    /// The result of the work. An empty text removes it.
    pub result: Option<String>,
}

impl Tasks {
    /// Uses the list in `store`, which was opened with its [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, Arc::new(Timestamp::now))
    }

    /// Like [`Self::new`], with another clock.
    pub fn with_clock(store: Store, clock: Clock) -> Self {
        Self {
            store: NotifyingStore::new(store, clock),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.store()
    }

    /// The same list, notifying the subscribers of `service` of changes.
    pub(super) fn notifying(&self, service: &LocalService) -> Self {
        Self {
            store: self.store.notifying(Some(service)),
        }
    }

    /// Creates a task.
    ///
    /// # Errors
    /// The description is blank, or the parent does not exist.
    pub async fn create(&self, new: NewTask) -> Result<Task, TaskError> {
        self.change(move |change| change.create(new)).await
    }

    /// Creates a task that is blocked by these tasks.
    ///
    /// # Errors
    /// The description is blank, or the parent or one of the blockers does not exist.
    pub async fn create_after(
        &self,
        new: NewTask,
        blockers: Vec<String>,
    ) -> Result<Task, TaskError> {
        self.change(move |change| {
            let mut task = change.create(new)?;
            for blocker in blockers {
                task = change.add_blocker(task.id, blocker)?;
            }
            Ok(task)
        })
        .await
    }

    /// Lists tasks.
    ///
    /// # Errors
    /// The parent in the filter does not exist.
    pub async fn list(&self, filter: TaskFilter) -> Result<ListedTasks, TaskError> {
        self.read(move |db| list(db, &filter)).await
    }

    /// Returns a task.
    ///
    /// # Errors
    /// No task has this id.
    pub async fn get(&self, id: impl Into<String>) -> Result<Task, TaskError> {
        let id = id.into();
        self.read(move |db| tables::find(db, &id)).await
    }

    /// Changes a task, and returns it.
    ///
    /// # Errors
    /// No task has this id, or the new description is blank.
    pub async fn update(&self, id: impl Into<String>, update: Update) -> Result<Task, TaskError> {
        let id = id.into();
        self.change(move |change| change.update(&id, update)).await
    }

    /// Deletes a task, and with `cascade` its subtasks too. Returns the ids of all deleted tasks.
    ///
    /// # Errors
    /// No task has this id, or the task has subtasks and `cascade` is false.
    pub async fn delete(
        &self,
        id: impl Into<String>,
        cascade: bool,
    ) -> Result<Vec<String>, TaskError> {
        let id = id.into();
        self.change(move |change| change.delete(&id, cascade)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TaskError> + Send + 'static,
    ) -> Result<T, TaskError> {
        self.store().read(work).await
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, TaskError> + Send + 'static,
    ) -> Result<T, TaskError> {
        self.store.change(work).await
    }
}

fn list(db: &Connection, filter: &TaskFilter) -> Result<ListedTasks, TaskError> {
    const PICKED: &str = "WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR parent_id = ?2)";
    if let Some(parent) = &filter.parent_id {
        tables::must_exist(db, parent)?;
    }
    let picked = (filter.status, &filter.parent_id);
    let total = db
        .prepare_cached(&format!("SELECT count(*) FROM tasks {PICKED}"))?
        .query_row(picked, |row| row.get::<_, i64>(0))?;
    let ordered = format!("{PICKED} ORDER BY priority, created_at DESC, id DESC LIMIT ?3");
    let tasks = tables::select(db, &ordered, (picked.0, picked.1, filter.limit))?;
    Ok(ListedTasks {
        tasks,
        total: total.unsigned_abs(),
    })
}

/// The ids of the tasks that this task blocks.
fn dependents(db: &Connection, id: &str) -> Result<Vec<String>, TaskError> {
    let statement = "SELECT task_id FROM task_blockers WHERE blocked_by_id = ?1";
    Ok(ids(db, statement, [id])?)
}

#[cfg(test)]
mod tests;
