//! The sessions.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plexus_store::Store;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::error::ClaudeCodeError;
use super::tables;
use crate::ledger::written;

/// For how long a session stays busy that a process left behind.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
/// How often is looked whether a session is free again.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often a chat says that it still runs.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// The sessions of one store, which several processes may share. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
    releasing: TaskTracker,
}

/// A conversation that goes on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Session {
    /// Its id
    pub id: String,
    /// Its name, which no other session has
    pub name: String,
    /// The folder that the agent works in
    pub working_dir: String,
    /// The model; if null, the agent's choice
    pub model: Option<String>,
    /// What the agent is told beforehand, if not what it always is
    pub system_prompt: Option<String>,
    /// Whether the agent can ask for permissions
    pub loopback_enabled: bool,
    /// What the agent calls the conversation; null before the first chat
    pub agent_session_id: Option<String>,
    /// Whether the next chat begins a conversation of its own from there.
    #[serde(skip)]
    pub(super) forks: bool,
    /// The session that it goes on from
    pub forked_from: Option<String>,
    /// How many chats there were
    pub chats: i64,
    /// When it was created
    pub created_at: String,
    /// When it was last changed
    pub updated_at: String,
}

/// A session to be created.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct NewSession {
    /// Its name.
    pub name: String,
    /// The folder that the agent works in.
    pub working_dir: String,
    /// The model.
    pub model: Option<String>,
    /// What the agent is told beforehand.
    pub system_prompt: Option<String>,
    /// Whether the agent can ask for permissions.
    pub loopback_enabled: bool,
}

impl Sessions {
    /// The sessions in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self {
            store,
            releasing: TaskTracker::new(),
        }
    }

    /// Adds a session.
    ///
    /// # Errors
    /// Its name is taken, or its folder is not there.
    pub async fn create(&self, new: NewSession) -> Result<Session, ClaudeCodeError> {
        let folder = Path::new(&new.working_dir);
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        if !folder.is_dir() {
            return Err(ClaudeCodeError::NoFolder(folder.display().to_string()));
        }
        let now = written(Timestamp::now());
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

    /// Adds a session that goes on from where another is; the other stays as it is.
    ///
    /// # Errors
    /// There is no such session, or the new name is taken.
    pub async fn fork(&self, name: &str, new_name: String) -> Result<Session, ClaudeCodeError> {
        let source = self.get(name).await?;
        let now = written(Timestamp::now());
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

    /// The session of this name or id.
    ///
    /// # Errors
    /// There is none.
    pub async fn get(&self, name: &str) -> Result<Session, ClaudeCodeError> {
        let name = name.to_owned();
        self.store.read(move |db| tables::find(db, &name)).await
    }

    /// Every session, in the order in which they were created.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self) -> Result<Vec<Session>, ClaudeCodeError> {
        self.store.read(tables::all).await
    }

    /// Deletes a session, once it is no longer busy, for which is waited for `patience` at most.
    /// What the agent itself remembers of it stays.
    ///
    /// # Errors
    /// There is none of this name or id, or it is busy.
    pub async fn delete(&self, name: &str, patience: Duration) -> Result<Session, ClaudeCodeError> {
        let busy = self.claim_within(name, patience).await?;
        let id = busy.session.id.clone();
        self.store.write(move |db| tables::delete(db, &id)).await?;
        Ok(busy.session.clone())
    }

    /// Makes a session busy, until that is dropped.
    pub(super) async fn claim(&self, name: &str) -> Result<Busy, ClaudeCodeError> {
        let name = name.to_owned();
        let (now, until) = (written(Timestamp::now()), lease());
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
        Ok(Busy {
            session: session.await?,
            sessions: self.clone(),
            claim,
            released: false,
        })
    }

    async fn claim_within(&self, name: &str, patience: Duration) -> Result<Busy, ClaudeCodeError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.claim(name).await {
                Err(ClaudeCodeError::Busy(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(LOOK_EVERY).await;
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

/// A session that is ours alone, in whichever process others are.
pub(super) struct Busy {
    pub(super) session: Session,
    sessions: Sessions,
    claim: String,
    released: bool,
}

impl Busy {
    /// Says again and again that it is ours. Ends if the session is gone, or no longer ours.
    pub(super) async fn keep(&self) {
        let mut interval = tokio::time::interval(RENEW_EVERY);
        interval.tick().await;
        while self.renew().await {
            interval.tick().await;
        }
    }

    async fn renew(&self) -> bool {
        let claim = self.claim.clone();
        let renewed = self.sessions.set_busy(claim, Some(lease())).await;
        renewed.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot say that a session is busy");
            true
        })
    }

    /// Others may have it. Who drops it instead does not know when they may.
    pub(super) async fn release(mut self) {
        let released = self.sessions.set_busy(self.claim.clone(), None).await;
        self.released = released.is_ok();
    }

    /// The next chat goes on from this conversation.
    pub(super) async fn went_on_as(&self, agent_session_id: String) -> Result<(), ClaudeCodeError> {
        let (claim, now) = (self.claim.clone(), written(Timestamp::now()));
        let written = self
            .sessions
            .store
            .write(move |db| tables::set_agent_session(db, &claim, &agent_session_id, &now));
        written.await
    }
}

impl Drop for Busy {
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

fn lease() -> String {
    let until = Timestamp::now().saturating_add(LEASE);
    written(until.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that slept past its lease has lost the session, and takes it from nobody when it
    /// wakes up.
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
        let sleeper = sessions.claim("s").await.unwrap();
        assert!(sleeper.renew().await);
        let expire = "UPDATE claudecode_sessions SET busy_until = '2000-01-01T00:00:00.000Z'";
        let expired = store.write(move |db| Ok::<_, ClaudeCodeError>(db.execute(expire, [])?));
        assert_eq!(expired.await.unwrap(), 1);

        let next = sessions.claim("s").await.unwrap();
        assert!(!sleeper.renew().await);
        sleeper.went_on_as("old".to_owned()).await.unwrap();
        sleeper.release().await;
        let refused = sessions.claim("s").await;
        assert!(matches!(refused, Err(ClaudeCodeError::Busy(_))));
        assert_eq!(sessions.get("s").await.unwrap().chats, 0);
        next.release().await;
        sessions.claim("s").await.unwrap();
    }
}
