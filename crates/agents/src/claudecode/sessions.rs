//! [`Sessions`]: stored sessions, with a lease for the chat that uses one.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plexus_mcp_store::Store;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::error::ClaudeCodeError;
use super::tables;
use plexus_mcp_builtins::support::timestamp_text;

/// How long a session stays locked after its process died.
const LEASE_DURATION: SignedDuration = SignedDuration::from_secs(30);
/// How often a waiting caller checks whether a session is free.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often a running chat renews its lease.
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// The sessions of one store, which several processes may share. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
    releasing: TaskTracker,
}

/// A session with an agent: a conversation that each chat continues.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Session {
    /// The session's id
    pub id: String,
    /// The session's name, which no other session has
    pub name: String,
    /// The working directory of the agent
    pub working_dir: String,
    /// The model; if null, the agent's default
    pub model: Option<String>,
    /// The system prompt; if null, the agent's default
    pub system_prompt: Option<String>,
    /// Whether the agent can ask for permissions
    pub loopback_enabled: bool,
    /// The agent's own id of the conversation; null before the first chat
    pub agent_session_id: Option<String>,
    /// Whether the next chat forks the agent's conversation instead of continuing it.
    #[serde(skip)]
    pub(super) forks: bool,
    /// The id of the session from which this one was forked
    pub forked_from: Option<String>,
    /// Number of chats
    pub chats: i64,
    /// When the session was created
    pub created_at: String,
    /// When the session was last changed
    pub updated_at: String,
}

/// A session to be created.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct NewSession {
    /// The name of the session.
    pub name: String,
    /// The working directory of the agent.
    pub working_dir: String,
    /// The model; the agent's default if `None`.
    pub model: Option<String>,
    /// The system prompt; the agent's default if `None`.
    pub system_prompt: Option<String>,
    /// Whether the agent can ask for permissions.
    pub loopback_enabled: bool,
}

impl Sessions {
    /// Uses the sessions in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self {
            store,
            releasing: TaskTracker::new(),
        }
    }

    /// Creates a session.
    ///
    /// # Errors
    /// Another session has the name, or the working directory does not exist.
    pub async fn create(&self, new: NewSession) -> Result<Session, ClaudeCodeError> {
        let folder = Path::new(&new.working_dir);
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        if !folder.is_dir() {
            return Err(ClaudeCodeError::NoFolder(folder.display().to_string()));
        }
        let now = timestamp_text(Timestamp::now());
        let session = Session {
            id: new_id(),
            name: new.name,
            working_dir: folder.display().to_string(),
            model: new.model,
            system_prompt: new.system_prompt,
            loopback_enabled: new.loopback_enabled,
            agent_session_id: None,
            forks: false,
            forked_from: None,
            chats: 0,
            created_at: now.clone(),
            updated_at: now,
        };
        self.insert(session).await
    }

    /// Creates a session that continues the conversation of another, which stays unchanged.
    ///
    /// # Errors
    /// No session has the name, or another session has the new name.
    pub async fn fork(&self, name: &str, new_name: String) -> Result<Session, ClaudeCodeError> {
        let source = self.get(name).await?;
        let now = timestamp_text(Timestamp::now());
        let fork = Session {
            id: new_id(),
            name: new_name,
            forks: source.agent_session_id.is_some(),
            forked_from: Some(source.id.clone()),
            chats: 0,
            created_at: now.clone(),
            updated_at: now,
            ..source
        };
        self.insert(fork).await
    }

    /// Returns the session of this name or id.
    ///
    /// # Errors
    /// No session has this name or id.
    pub async fn get(&self, name: &str) -> Result<Session, ClaudeCodeError> {
        let name = name.to_owned();
        self.store.read(move |db| tables::find(db, &name)).await
    }

    /// Returns all sessions, in the order in which they were created.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self) -> Result<Vec<Session>, ClaudeCodeError> {
        self.store.read(tables::all).await
    }

    /// Deletes a session. Waits for a running chat to end, for `timeout` at most. The agent's own
    /// files stay.
    ///
    /// # Errors
    /// No session has this name or id, or the session is busy.
    pub async fn delete(&self, name: &str, timeout: Duration) -> Result<Session, ClaudeCodeError> {
        let lock = self.claim_within(name, timeout).await?;
        let id = lock.session.id.clone();
        self.store.write(move |db| tables::delete(db, &id)).await?;
        Ok(lock.session.clone())
    }

    /// Locks a session until the returned guard is dropped.
    pub(super) async fn claim(&self, name: &str) -> Result<SessionLock, ClaudeCodeError> {
        let name = name.to_owned();
        let (now, until) = (timestamp_text(Timestamp::now()), lease_end());
        let claim = Uuid::now_v7().to_string();
        let ours = claim.clone();
        let session = self.store.write(move |db| {
            let session = tables::find(db, &name)?;
            if tables::claim(db, &session.id, &now, &until, &ours)? {
                Ok(session)
            } else {
                Err(ClaudeCodeError::Busy(session.name))
            }
        });
        Ok(SessionLock {
            session: session.await?,
            sessions: self.clone(),
            claim,
            released: false,
        })
    }

    async fn claim_within(
        &self,
        name: &str,
        timeout: Duration,
    ) -> Result<SessionLock, ClaudeCodeError> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.claim(name).await {
                Err(ClaudeCodeError::Busy(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(LOCK_POLL_INTERVAL).await;
                }
                claimed => return claimed,
            }
        }
    }

    async fn insert(&self, session: Session) -> Result<Session, ClaudeCodeError> {
        let inserted = self.store.write(move |db| {
            tables::insert(db, &session)?;
            Ok(session)
        });
        inserted.await
    }

    async fn set_busy(
        &self,
        claim: String,
        until: Option<String>,
    ) -> Result<bool, ClaudeCodeError> {
        self.store
            .write(move |db| tables::set_busy(db, &claim, until.as_deref()))
            .await
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A lock on a session: no other chat, in any process, uses it.
pub(super) struct SessionLock {
    pub(super) session: Session,
    sessions: Sessions,
    claim: String,
    released: bool,
}

impl SessionLock {
    /// Renews the lease periodically. Ends if the session was deleted or the lease was lost.
    pub(super) async fn renew_periodically(&self) {
        let mut interval = tokio::time::interval(LEASE_RENEW_INTERVAL);
        interval.tick().await;
        while self.renew().await {
            interval.tick().await;
        }
    }

    async fn renew(&self) -> bool {
        let claim = self.claim.clone();
        let renewed = self.sessions.set_busy(claim, Some(lease_end())).await;
        renewed.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot renew the lease of a session");
            true
        })
    }

    /// Unlocks the session, and waits until that is stored. Dropping the guard unlocks it without
    /// waiting.
    pub(super) async fn release(mut self) {
        let released = self.sessions.set_busy(self.claim.clone(), None).await;
        self.released = released.is_ok();
    }

    /// Stores the agent's id of the conversation, which the next chat continues.
    pub(super) async fn set_agent_session(
        &self,
        agent_session_id: String,
    ) -> Result<(), ClaudeCodeError> {
        let (claim, now) = (self.claim.clone(), timestamp_text(Timestamp::now()));
        let stored = self
            .sessions
            .store
            .write(move |db| tables::set_agent_session(db, &claim, &agent_session_id, &now));
        stored.await
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (sessions, claim) = (self.sessions.clone(), self.claim.clone());
            let releasing = async move { sessions.set_busy(claim, None).await };
            self.sessions.releasing.spawn_on(releasing, &runtime);
        }
    }
}

fn new_id() -> String {
    format!("session_{}", Uuid::now_v7().simple())
}

fn lease_end() -> String {
    let until = Timestamp::now().saturating_add(LEASE_DURATION);
    timestamp_text(until.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was suspended longer than its lease has lost the session, and does not take
    /// it back from the new holder.
    #[tokio::test]
    async fn a_claim_that_was_lost_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plexus.db");
        let store = Store::open(&path, &[tables::MIGRATIONS]).unwrap();
        let sessions = Sessions::new(store.clone());
        let new = NewSession {
            name: "s".to_owned(),
            working_dir: folder.path().display().to_string(),
            ..NewSession::default()
        };
        sessions.create(new).await.unwrap();
        let suspended = sessions.claim("s").await.unwrap();
        assert!(suspended.renew().await);
        let expire = "UPDATE claudecode_sessions SET busy_until = '2000-01-01T00:00:00.000Z'";
        let expired = store.write(move |db| Ok::<_, ClaudeCodeError>(db.execute(expire, [])?));
        assert_eq!(expired.await.unwrap(), 1);

        let next = sessions.claim("s").await.unwrap();
        assert!(!suspended.renew().await);
        suspended.set_agent_session("old".to_owned()).await.unwrap();
        suspended.release().await;
        let refused = sessions.claim("s").await;
        assert!(matches!(refused, Err(ClaudeCodeError::Busy(_))));
        assert_eq!(sessions.get("s").await.unwrap().chats, 0);
        next.release().await;
        sessions.claim("s").await.unwrap();
    }
}
