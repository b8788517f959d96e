//! Creates, updates and deletes tasks.

use super::{NewTask, Update, WriteTransaction, dependents};
use crate::notifying_store::timestamp_text;
use crate::task::error::TaskError;
use crate::task::model::{Task, TaskStatus};
use crate::task::resources;
use crate::task::tables::{self, ids};

impl WriteTransaction<'_> {
    pub(super) fn create(&mut self, new: NewTask) -> Result<Task, TaskError> {
        let description = described(new.description)?;
        if let Some(parent) = &new.parent_id {
            tables::must_exist(self.db, parent)?;
        }
        let id = format!("task_{}", self.new_id().simple());
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
                TaskStatus::Pending,
                timestamp_text(self.now),
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
            // The dependents lose a blocker.
            for dependent in dependents(self.db, task)? {
                self.touch(&dependent);
            }
            self.touch(task);
        }
        // Children are deleted before their parents.
        let mut delete = self.db.prepare_cached("DELETE FROM tasks WHERE id = ?1")?;
        for task in tree.iter().rev() {
            delete.execute([task])?;
        }
        Ok(tree)
    }

    /// Changes the state of a task, with its times of start and end. A task that is not in progress
    /// has no claim.
    pub(super) fn enter(&self, task: &mut Task, status: TaskStatus) {
        if task.status == status {
            return;
        }
        let now = || Some(timestamp_text(self.now));
        task.status = status;
        task.completed_at = if status.is_over() { now() } else { None };
        task.started_at = match status {
            TaskStatus::Pending => None,
            TaskStatus::InProgress => task.started_at.take().or_else(now),
            TaskStatus::Completed | TaskStatus::Failed => task.started_at.take(),
        };
        if status != TaskStatus::InProgress {
            task.claimed_by = None;
            task.claimed_until = None;
        }
    }

    /// Updates the row of an existing task.
    pub(super) fn save(&mut self, mut task: Task) -> Result<Task, TaskError> {
        task.updated_at = timestamp_text(self.now);
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

    pub(super) fn touch(&mut self, id: &str) {
        self.changed_uris.insert(resources::uri(id));
        self.changed_uris.insert(resources::LIST.to_owned());
    }
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
