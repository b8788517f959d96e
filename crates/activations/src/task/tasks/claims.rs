//! Who works on what, and for how long.
//!
//! A claim ends by itself, so that what an agent worked on when it died is ready again. Until
//! somebody else takes it, the claim can still be renewed: an agent that was only slow goes on.

use std::time::Duration;

use plexus_store::rusqlite::Connection;

use super::blockers::open_blockers;
use super::{Change, Tasks};
use crate::ledger::written;
use crate::task::error::TaskError;
use crate::task::model::{Status, Task};
use crate::task::tables;

/// What can be worked on at the time `?1`: pending, or left behind, and waiting for nothing.
const READY: &str = "
    WHERE (status = 'pending' OR (status = 'in_progress' AND claimed_until <= ?1))
      AND NOT EXISTS (
          SELECT 1 FROM task_blockers JOIN tasks AS blocker ON blocker.id = blocked_by_id
          WHERE task_id = tasks.id AND blocker.status <> 'completed'
      )
    ORDER BY priority, created_at, id
    LIMIT ?2";

impl Tasks {
    /// What can be worked on now, the most urgent first and then the oldest.
    ///
    /// # Errors
    /// The store fails.
    pub async fn next(&self, limit: u32) -> Result<Vec<Task>, TaskError> {
        let now = self.ledger.now();
        self.read(move |db| ready(db, &written(now), limit)).await
    }

    /// Gives a task to `owner` for a time, and starts it: the one of this id, or the first that is
    /// ready. Claiming what one has claimed already renews the claim.
    ///
    /// # Errors
    /// There is no such task, somebody else has it, it is over, or it waits for others.
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

    /// Lets a claim last from now on for this time.
    ///
    /// # Errors
    /// There is no such task, or it is not, or no longer, claimed by `owner`.
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

    /// Gives a task back, so that others can claim it.
    ///
    /// # Errors
    /// There is no such task, or it is not, or no longer, claimed by `owner`.
    pub async fn release(
        &self,
        id: impl Into<String>,
        owner: impl Into<String>,
    ) -> Result<Task, TaskError> {
        let (id, owner) = (id.into(), owner.into());
        self.change(move |change| {
            let mut task = change.claimed(&id, owner)?;
            change.enter(&mut task, Status::Pending);
            change.save(task)
        })
        .await
    }
}

impl Change<'_> {
    fn claim(
        &mut self,
        id: Option<&str>,
        owner: String,
        lease: Duration,
    ) -> Result<Task, TaskError> {
        let task = match id {
            Some(id) => self.claimable(tables::find(self.db, id)?, &owner)?,
            None => ready(self.db, &written(self.now), 1)?
                .pop()
                .ok_or(TaskError::NothingReady)?,
        };
        self.give(task, owner, lease)
    }

    fn claimable(&self, task: Task, owner: &str) -> Result<Task, TaskError> {
        let now = written(self.now);
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
            (None, _) if task.status != Status::Pending => {
                let status = task.status;
                return Err(TaskError::NotClaimable { id, status });
            }
            // Pending, or left behind.
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
        self.enter(&mut task, Status::InProgress);
        task.claimed_by = Some(owner);
        // Only a clock at the end of time would overflow.
        task.claimed_until = Some(written(self.now.checked_add(lease).unwrap_or(self.now)));
        self.save(task)
    }
}

fn ready(db: &Connection, now: &str, limit: u32) -> Result<Vec<Task>, TaskError> {
    Ok(tables::select(db, READY, (now, limit))?)
}
