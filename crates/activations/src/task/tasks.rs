//! The task list.

mod blockers;
mod change;
mod claims;

use std::sync::Arc;

use jiff::Timestamp;
use plexus_service::LocalService;
use plexus_store::Store;
use plexus_store::rusqlite::Connection;

use super::error::TaskError;
use super::model::{Status, Task};
use super::tables::{self, ids};
use crate::ledger::{self, Clock, Ledger};

/// A change of the task list under way.
type Change<'a> = ledger::Change<'a, Tasks>;

/// A list of tasks, which several agents, people and processes may share. Cheap to clone.
///
/// Every method that changes something does all of it or, if it fails, nothing. Dropping its future
/// before it is its turn means that nothing is done; later, that it is done all the same.
#[derive(Debug, Clone)]
pub struct Tasks {
    ledger: Ledger,
}

/// A task to be created.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct NewTask {
    /// What is to be done.
    pub description: String,
    /// The task that this is a part of.
    pub parent_id: Option<String>,
    /// From 1, the most urgent, to 5.
    pub priority: u8,
    /// What one needs to know to do it.
    pub context: Option<String>,
}

/// Which tasks to list.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct Filter {
    /// Only tasks in this state.
    pub status: Option<Status>,
    /// Only parts of this task.
    pub parent_id: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// Tasks that were found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// As many as were wanted and fit into one answer, the most urgent first and then the newest.
    pub tasks: Vec<Task>,
    /// How many there are.
    pub total: u64,
}

/// What is to be different about a task. What is `None` stays.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct Update {
    /// What is to be done.
    pub description: Option<String>,
    /// From 1, the most urgent, to 5.
    pub priority: Option<u8>,
    /// How far it is.
    pub status: Option<Status>,
    /// What one needs to know to do it. Empty: nothing.
    pub context: Option<String>,
    /// What came of it. Empty: nothing.
    pub result: Option<String>,
}

impl Tasks {
    /// The list in `store`, which was opened with its [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self::with_clock(store, Arc::new(Timestamp::now))
    }

    /// The same, going by another clock.
    pub fn with_clock(store: Store, clock: Clock) -> Self {
        Self {
            ledger: Ledger::new(store, clock),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.ledger.store()
    }

    /// The same list, telling the subscribers of `service` what changes.
    pub(super) fn announcing_to(&self, service: &LocalService) -> Self {
        Self {
            ledger: self.ledger.announcing_to(Some(service)),
        }
    }

    /// Adds a task.
    ///
    /// # Errors
    /// It has no description, or a parent that is not there.
    pub async fn create(&self, new: NewTask) -> Result<Task, TaskError> {
        self.change(move |change| change.create(new)).await
    }

    /// The same, waiting from the start for these tasks to be completed.
    ///
    /// # Errors
    /// It has no description, or its parent or one of these is not there.
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
    /// Their parent is not there.
    pub async fn list(&self, filter: Filter) -> Result<Found, TaskError> {
        self.read(move |db| list(db, &filter)).await
    }

    /// One task.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn get(&self, id: impl Into<String>) -> Result<Task, TaskError> {
        let id = id.into();
        self.read(move |db| tables::find(db, &id)).await
    }

    /// Changes a task, and gives it back.
    ///
    /// # Errors
    /// There is none of this id, or it would have no description.
    pub async fn update(&self, id: impl Into<String>, update: Update) -> Result<Task, TaskError> {
        let id = id.into();
        self.change(move |change| change.update(&id, update)).await
    }

    /// Deletes a task, with `cascade` its subtasks too, and gives the ids of all that was deleted.
    ///
    /// # Errors
    /// There is none of this id, or it has subtasks.
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
        work: impl FnOnce(&mut Change<'_>) -> Result<T, TaskError> + Send + 'static,
    ) -> Result<T, TaskError> {
        self.ledger.change(work).await
    }
}

fn list(db: &Connection, filter: &Filter) -> Result<Found, TaskError> {
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
    Ok(Found {
        tasks,
        total: total.unsigned_abs(),
    })
}

/// The tasks that wait for this one.
fn dependents(db: &Connection, id: &str) -> Result<Vec<String>, TaskError> {
    let statement = "SELECT task_id FROM task_blockers WHERE blocked_by_id = ?1";
    Ok(ids(db, statement, [id])?)
}

#[cfg(test)]
mod tests;
