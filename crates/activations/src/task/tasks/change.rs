//! One change of the task list: a transaction, its time, and what it touches.

use jiff::Timestamp;
use plexus_service::LocalService;
use plexus_store::rusqlite::Transaction;
use uuid::Uuid;

use super::{Ids, NewTask, Update, dependents};
use crate::task::error::TaskError;
use crate::task::model::{Status, Task};
use crate::task::resources;
use crate::task::tables::{self, ids};

/// A change under way.
pub(super) struct Change<'a> {
    pub(super) db: &'a Transaction<'a>,
    pub(super) now: Timestamp,
    ids: &'a Ids,
    /// The ids of the tasks that are different now.
    touched: Vec<String>,
}

impl<'a> Change<'a> {
    pub(super) fn new(db: &'a Transaction<'a>, now: Timestamp, ids: &'a Ids) -> Self {
        Self {
            db,
            now,
            ids,
            touched: Vec::new(),
        }
    }

    pub(super) fn create(&mut self, new: NewTask) -> Result<Task, TaskError> {
        let description = described(new.description)?;
        if let Some(parent) = &new.parent_id {
            tables::must_exist(self.db, parent)?;
        }
        let id = self.new_id();
        self.db
            .prepare_cached(
                "INSERT INTO tasks (id, parent_id, description, context, priority, status,
                                    created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
            )?
            .execute((
                &id,
                new.parent_id,
                description,
                unless_empty(new.context),
                new.priority,
                Status::Pending,
                written(self.now),
            ))?;
        self.touch(&id);
        tables::find(self.db, &id)
    }

    pub(super) fn update(&mut self, id: &str, update: Update) -> Result<Task, TaskError> {
        let before = tables::find(self.db, id)?;
        let mut task = before.clone();
        if let Some(description) = update.description {
            task.description = described(description)?;
        }
        if let Some(priority) = update.priority {
            task.priority = priority;
        }
        if let Some(context) = update.context {
            task.context = unless_empty(Some(context));
        }
        if let Some(result) = update.result {
            task.result = unless_empty(Some(result));
        }
        if let Some(status) = update.status {
            self.enter(&mut task, status);
        }
        if task == before {
            return Ok(task);
        }
        self.save(task)
    }

    pub(super) fn delete(&mut self, id: &str, cascade: bool) -> Result<Vec<String>, TaskError> {
        tables::must_exist(self.db, id)?;
        let tree = ids(
            self.db,
            "WITH RECURSIVE tree (id) AS (
                 VALUES (?1)
                 UNION ALL
                 SELECT tasks.id FROM tasks JOIN tree ON tasks.parent_id = tree.id
             )
             SELECT id FROM tree",
            [id],
        )?;
        if tree.len() > 1 && !cascade {
            return Err(TaskError::HasSubtasks {
                id: id.to_owned(),
                subtasks: tree.len() as u64 - 1,
            });
        }
        for task in &tree {
            // These lose a blocker.
            for dependent in dependents(self.db, task)? {
                self.touch(&dependent);
            }
            self.touch(task);
        }
        // Children go before their parents.
        let mut delete = self.db.prepare_cached("DELETE FROM tasks WHERE id = ?1")?;
        for task in tree.iter().rev() {
            delete.execute([task])?;
        }
        Ok(tree)
    }

    /// Puts a task into a state, with what goes with it: when it began and ended, and that nobody
    /// works on what is not in progress.
    pub(super) fn enter(&self, task: &mut Task, status: Status) {
        if task.status == status {
            return;
        }
        let now = || Some(written(self.now));
        task.status = status;
        task.completed_at = if status.is_over() { now() } else { None };
        task.started_at = match status {
            Status::Pending => None,
            Status::InProgress => task.started_at.take().or_else(now),
            Status::Completed | Status::Failed => task.started_at.take(),
        };
        if status != Status::InProgress {
            task.claimed_by = None;
            task.claimed_until = None;
        }
    }

    /// Writes a task that is there already.
    pub(super) fn save(&mut self, mut task: Task) -> Result<Task, TaskError> {
        task.updated_at = written(self.now);
        self.db
            .prepare_cached(
                "UPDATE tasks SET description = ?2, context = ?3, priority = ?4, status = ?5,
                     result = ?6, started_at = ?7, completed_at = ?8, updated_at = ?9,
                     claimed_by = ?10, claimed_until = ?11
                 WHERE id = ?1",
            )?
            .execute((
                &task.id,
                &task.description,
                &task.context,
                task.priority,
                task.status,
                &task.result,
                &task.started_at,
                &task.completed_at,
                &task.updated_at,
                &task.claimed_by,
                &task.claimed_until,
            ))?;
        self.touch(&task.id);
        Ok(task)
    }

    /// Ids sort by the time at which they were made.
    fn new_id(&self) -> String {
        let since_1970 = self.now.as_duration();
        let seconds = u64::try_from(since_1970.as_secs()).unwrap_or(0);
        let nanoseconds = since_1970.subsec_nanos().unsigned_abs();
        let time = uuid::Timestamp::from_unix(self.ids, seconds, nanoseconds);
        format!("task_{}", Uuid::new_v7(time).simple())
    }

    pub(super) fn touch(&mut self, id: &str) {
        self.touched.push(id.to_owned());
    }

    /// Tells the subscribers of `service` when it is dropped.
    pub(super) fn announcement(self, service: Option<LocalService>) -> Announcement {
        Announcement {
            service,
            touched: self.touched,
        }
    }
}

/// News of a change. It is dropped when the change is made, even if the caller has gone by then.
pub(super) struct Announcement {
    service: Option<LocalService>,
    touched: Vec<String>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let Some(service) = self.service.take().filter(|_| !self.touched.is_empty()) else {
            return;
        };
        self.touched.sort_unstable();
        self.touched.dedup();
        for id in &self.touched {
            service.resource_updated(&resources::uri(id));
        }
        service.resource_updated(resources::LIST);
    }
}

/// A time as it is stored and shown.
pub(super) fn written(time: Timestamp) -> String {
    format!("{time:.3}")
}

fn described(description: String) -> Result<String, TaskError> {
    if description.trim().is_empty() {
        return Err(TaskError::Undescribed);
    }
    Ok(description)
}

fn unless_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
