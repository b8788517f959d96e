//! Claims of tasks, with leases.
//!
//! A claim expires, so that the task of an agent that died is ready again. Until another agent
//! claims it, an expired claim can still be renewed: an agent that was only slow continues.

use std::time::Duration;

use plexus_mcp_store::rusqlite::Connection;

use super::blockers::open_blockers;
use super::{Tasks, WriteTransaction};
use crate::notifying_store::timestamp_text;
use crate::task::error::TaskError;
use crate::task::model::{Task, TaskStatus};
use crate::task::tables;

/// Selects the tasks that are ready at the time `?1`: pending, or in progress with an expired claim,
/// and without open blockers. Each kind has an index, from which the first `?2` are read; those with
/// an expired claim are found among all claims, and few claims are in force at any time.
pub(super) const READY: &str = "
    WHERE id IN (
        SELECT id FROM (
            SELECT id FROM tasks INDEXED BY tasks_ready
            WHERE status = 'pending' AND open_blockers = 0
            ORDER BY priority, created_at, id LIMIT ?2
        )
        UNION ALL
        SELECT id FROM (
            SELECT id FROM tasks INDEXED BY tasks_claimed
            WHERE status = 'in_progress' AND open_blockers = 0 AND claimed_until <= ?1
            ORDER BY priority, created_at, id LIMIT ?2
        )
    )
    ORDER BY priority, created_at, id
    LIMIT ?2";

impl Tasks {
    /// Returns the tasks that are ready, the most urgent first and then the oldest.
    ///
    /// # Errors
    /// The store failed.
    pub async fn next(&self, limit: u32) -> Result<Vec<Task>, TaskError> {
        let now = self.store.now();
        self.read(move |db| ready(db, &timestamp_text(now), limit))
            .await
    }

    /// Claims a task for `owner` for the time of `lease`, and starts it: the task of this id, or the
    /// first that is ready. A second claim by the same owner renews the claim.
    ///
    /// # Errors
    /// No task has this id, another owner has claimed it, it has ended, or it is blocked.
    pub async fn claim(
        &self,
        id: Option<String>,
        owner: impl Into<String>,
        lease: Duration,
    ) -> Result<Task, TaskError> {
        let owner = owner.into();
        self.change(move |change| change.claim(id.as_deref(), owner, lease))
            .await
    }

    /// Renews a claim: it then expires `lease` from now.
    ///
    /// # Errors
    /// No task has this id, or `owner` has no claim on it.
    pub async fn renew(
        &self,
        id: impl Into<String>,
        owner: impl Into<String>,
        lease: Duration,
    ) -> Result<Task, TaskError> {
        let (id, owner) = (id.into(), owner.into());
        self.change(move |change| {
            let task = change.claimed(&id, owner.clone())?;
            change.give(task, owner, lease)
        })
        .await
    }

    /// Releases a claim, so that other owners can claim the task.
    ///
    /// # Errors
    /// No task has this id, or `owner` has no claim on it.
    pub async fn release(
        &self,
        id: impl Into<String>,
        owner: impl Into<String>,
    ) -> Result<Task, TaskError> {
        let (id, owner) = (id.into(), owner.into());
        self.change(move |change| {
            let mut task = change.claimed(&id, owner)?;
            change.enter(&mut task, TaskStatus::Pending);
            change.save(task)
        })
        .await
    }
}

impl WriteTransaction<'_> {
    fn claim(
        &mut self,
        id: Option<&str>,
        owner: String,
        lease: Duration,
    ) -> Result<Task, TaskError> {
        let task = match id {
            Some(id) => self.claimable(tables::find(self.db, id)?, &owner)?,
            None => ready(self.db, &timestamp_text(self.now), 1)?
                .pop()
                .ok_or(TaskError::NothingReady)?,
        };
        self.give(task, owner, lease)
    }

    fn claimable(&self, task: Task, owner: &str) -> Result<Task, TaskError> {
        let now = timestamp_text(self.now);
        let id = task.id.clone();
        match (&task.claimed_by, &task.claimed_until) {
            (Some(holder), _) if holder == owner => return Ok(task),
            (Some(holder), Some(until)) if *until > now => {
                return Err(TaskError::Claimed {
                    id,
                    owner: holder.clone(),
                    until: until.clone(),
                });
            }
            (None, _) if task.status != TaskStatus::Pending => {
                let status = task.status;
                return Err(TaskError::NotClaimable { id, status });
            }
            // Pending, or in progress with an expired claim.
            _ => {}
        }
        let blockers = open_blockers(self.db, &id)?;
        if !blockers.is_empty() {
            return Err(TaskError::Blocked { id, blockers });
        }
        Ok(task)
    }

    fn claimed(&self, id: &str, owner: String) -> Result<Task, TaskError> {
        let task = tables::find(self.db, id)?;
        if task.claimed_by.as_ref() != Some(&owner) {
            let id = id.to_owned();
            return Err(TaskError::NotClaimedBy { id, owner });
        }
        Ok(task)
    }

    fn give(&mut self, mut task: Task, owner: String, lease: Duration) -> Result<Task, TaskError> {
        self.enter(&mut task, TaskStatus::InProgress);
        task.claimed_by = Some(owner);
        // The addition overflows only at the end of the calendar.
        task.claimed_until = Some(timestamp_text(
            self.now.checked_add(lease).unwrap_or(self.now),
        ));
        self.save(task)
    }
}

fn ready(db: &Connection, now: &str, limit: u32) -> Result<Vec<Task>, TaskError> {
    Ok(tables::select(db, READY, (now, limit))?)
}
