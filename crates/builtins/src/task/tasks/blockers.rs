//! Blockers: tasks that must be completed before another task.

use plexus_mcp_store::rusqlite::Connection;

use super::{Tasks, WriteTransaction};
use crate::task::error::TaskError;
use crate::task::model::Task;
use crate::task::tables::{self, ids};

impl Tasks {
    /// Adds a blocker to a task, and returns the task. It is no error if the task has it already.
    ///
    /// # Errors
    /// One of the tasks does not exist, or the blocker already waits for the task.
    pub async fn add_blocker(
        &self,
        task_id: impl Into<String>,
        blocked_by_id: impl Into<String>,
    ) -> Result<Task, TaskError> {
        let (task_id, blocked_by_id) = (task_id.into(), blocked_by_id.into());
        self.change(move |change| change.add_blocker(task_id, blocked_by_id))
            .await
    }

    /// Removes a blocker from a task, and returns the task.
    ///
    /// # Errors
    /// One of the tasks does not exist, or the other is not its blocker.
    pub async fn remove_blocker(
        &self,
        task_id: impl Into<String>,
        blocked_by_id: impl Into<String>,
    ) -> Result<Task, TaskError> {
        let (task_id, blocked_by_id) = (task_id.into(), blocked_by_id.into());
        self.change(move |change| change.remove_blocker(task_id, blocked_by_id))
            .await
    }

    /// Returns the blockers of a task, completed or not, the oldest first.
    ///
    /// # Errors
    /// No task has this id.
    pub async fn blockers(&self, task_id: impl Into<String>) -> Result<Vec<Task>, TaskError> {
        let task_id = task_id.into();
        self.read(move |db| blockers(db, &task_id)).await
    }
}

impl WriteTransaction<'_> {
    pub(super) fn add_blocker(
        &mut self,
        task_id: String,
        blocked_by_id: String,
    ) -> Result<Task, TaskError> {
        tables::must_exist(self.db, &task_id)?;
        tables::must_exist(self.db, &blocked_by_id)?;
        if task_id == blocked_by_id {
            return Err(TaskError::BlocksItself(task_id));
        }
        let is_cycle: bool = self
            .db
            .prepare_cached(
                "WITH RECURSIVE awaited (id) AS (
                     VALUES (?2)
                     UNION
                     SELECT blocked_by_id FROM task_blockers JOIN awaited ON task_id = id
                 )
                 SELECT EXISTS (SELECT 1 FROM awaited WHERE id = ?1)",
            )?
            .query_row((&task_id, &blocked_by_id), |row| row.get(0))?;
        if is_cycle {
            return Err(TaskError::Cycle {
                task_id,
                blocked_by_id,
            });
        }
        let added = self
            .db
            .prepare_cached("INSERT OR IGNORE INTO task_blockers VALUES (?1, ?2)")?
            .execute((&task_id, &blocked_by_id))?;
        let task = tables::find(self.db, &task_id)?;
        if added == 0 {
            return Ok(task);
        }
        self.save(task)
    }

    fn remove_blocker(
        &mut self,
        task_id: String,
        blocked_by_id: String,
    ) -> Result<Task, TaskError> {
        tables::must_exist(self.db, &task_id)?;
        tables::must_exist(self.db, &blocked_by_id)?;
        let removed = self
            .db
            .prepare_cached("DELETE FROM task_blockers WHERE (task_id, blocked_by_id) = (?1, ?2)")?
            .execute((&task_id, &blocked_by_id))?;
        if removed == 0 {
            return Err(TaskError::NotBlockedBy {
                task_id,
                blocked_by_id,
            });
        }
        let task = tables::find(self.db, &task_id)?;
        self.save(task)
    }
}

fn blockers(db: &Connection, task_id: &str) -> Result<Vec<Task>, TaskError> {
    tables::must_exist(db, task_id)?;
    let picked = "WHERE id IN (SELECT blocked_by_id FROM task_blockers WHERE task_id = ?1)
                  ORDER BY created_at, id";
    Ok(tables::select(db, picked, [task_id])?)
}

/// The blockers of a task that are not completed. A failed blocker still blocks, since its result
/// is missing.
pub(super) fn open_blockers(db: &Connection, task_id: &str) -> Result<Vec<String>, TaskError> {
    let statement = "SELECT id FROM task_blockers JOIN tasks ON id = blocked_by_id
                     WHERE task_id = ?1 AND status <> 'completed' ORDER BY id";
    Ok(ids(db, statement, [task_id])?)
}
