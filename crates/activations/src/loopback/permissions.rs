//! The requests for permission.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plexus_service::Context;
use plexus_store::Store;
use plexus_wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::error::LoopbackError;
use super::question;
use super::tables::{self, Ending};

/// How long a request waits for its answer.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// How often is looked for what other processes did.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// For how long requests are kept that are over.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// What agents ask for, and what they are told. Cheap to clone.
#[derive(Clone)]
pub struct Permissions {
    store: Store,
    changed: Arc<Notify>,
    withdrawing: TaskTracker,
}

/// What an agent wants to do.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct Request {
    /// The session in which it does, if that is known.
    pub session_id: Option<String>,
    /// The tool it wants to use.
    pub tool_name: String,
    /// The id of that use.
    pub tool_use_id: Option<String>,
    /// What it gives the tool: an object.
    pub input: Raw,
}

/// A request that nobody has answered yet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pending {
    /// By which it is answered
    pub approval_id: String,
    /// The session that it belongs to
    pub session_id: Option<String>,
    /// The tool that is to be used
    pub tool_name: String,
    /// The id of that use
    pub tool_use_id: Option<String>,
    /// What the tool is to be given
    #[schemars(with = "Map<String, Value>")]
    pub input: Raw,
    /// When it was asked
    pub created_at: String,
    /// When it is denied if nobody answers
    pub expires_at: String,
}

/// What an agent is told.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "there is no third answer")]
pub enum Decision {
    /// It may.
    Allow {
        /// What the tool is to be given instead.
        updated_input: Option<Raw>,
    },
    /// It may not.
    Deny {
        /// Why, for the agent to read.
        message: String,
    },
}

impl Permissions {
    /// The requests in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self {
            store,
            changed: Arc::default(),
            withdrawing: TaskTracker::new(),
        }
    }

    /// Asks, and waits for the answer, for `patience` at most. The user of `asked` is asked, if
    /// there is one and it can be; anybody else may answer by [`Permissions::respond`].
    ///
    /// Dropping the future withdraws the request.
    ///
    /// # Errors
    /// The store failed.
    pub async fn permit(
        &self,
        request: Request,
        patience: Duration,
        asked: Option<&Context>,
        told: impl FnOnce(&Pending),
    ) -> Result<Decision, LoopbackError> {
        let deadline = Instant::now() + patience;
        let id = format!("permission_{}", Uuid::now_v7().simple());
        // It may be stored although we are dropped while it is.
        let open = Open {
            permissions: self,
            id: Some(id.clone()),
        };
        let pending = self.open(id, request, patience).await?;
        told(&pending);
        let answered = async {
            let Some(answer) = question::put(&pending, asked).await else {
                // Somebody else may.
                return std::future::pending().await;
            };
            // Somebody else may have been faster.
            drop(self.respond(pending.approval_id.clone(), answer).await);
            std::future::pending().await
        };
        let decided = async {
            tokio::select! {
                decided = self.decided(&pending.approval_id) => decided,
                never = answered => never,
            }
        };
        let decided = timeout_at(deadline, decided).await;
        open.close_unless(decided.as_ref().is_err()).await;
        decided.unwrap_or_else(|_late| {
            let seconds = patience.as_secs();
            let message = format!("nobody answered within {seconds} seconds");
            Ok(Decision::Deny { message })
        })
    }

    /// Answers a request.
    ///
    /// # Errors
    /// There is none of this id, or it is over.
    pub async fn respond(
        &self,
        approval_id: impl Into<String>,
        decision: Decision,
    ) -> Result<(), LoopbackError> {
        self.end(approval_id.into(), Ending::Decided(decision))
            .await
    }

    /// What is to be answered, of this session or of all, the oldest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn pending(&self, session_id: Option<String>) -> Result<Vec<Pending>, LoopbackError> {
        let now = Timestamp::now();
        self.store
            .read(move |db| tables::pending(db, session_id.as_deref(), now))
            .await
    }

    /// The same, once there is something, or when `patience` is over.
    ///
    /// # Errors
    /// The store failed.
    pub async fn wait(
        &self,
        session_id: Option<String>,
        patience: Duration,
    ) -> Result<Vec<Pending>, LoopbackError> {
        let deadline = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            let pending = self.pending(session_id.clone()).await?;
            if !pending.is_empty() || Instant::now() >= deadline {
                return Ok(pending);
            }
            let look = deadline.min(Instant::now() + LOOK_EVERY);
            drop(timeout_at(look, changed).await);
        }
    }

    async fn open(
        &self,
        id: String,
        request: Request,
        patience: Duration,
    ) -> Result<Pending, LoopbackError> {
        let now = Timestamp::now();
        let patience = SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX);
        let expires_at = now.saturating_add(patience).unwrap_or(Timestamp::MAX);
        let pending = self.store.write(move |db| {
            tables::forget(db, now.saturating_sub(KEPT).unwrap_or(Timestamp::MIN))?;
            tables::insert(db, &id, &request, now, expires_at)
        });
        let pending = pending.await?;
        self.changed.notify_waiters();
        Ok(pending)
    }

    async fn decided(&self, id: &str) -> Result<Decision, LoopbackError> {
        loop {
            let changed = self.changed.notified();
            let asked = id.to_owned();
            let decision = self.store.read(move |db| tables::decision(db, &asked));
            if let Some(decision) = decision.await? {
                return Ok(decision);
            }
            drop(tokio::time::timeout(LOOK_EVERY, changed).await);
        }
    }

    async fn end(&self, id: String, ending: Ending) -> Result<(), LoopbackError> {
        let now = Timestamp::now();
        let ended = self
            .store
            .write(move |db| tables::end(db, &id, &ending, now));
        ended.await?;
        self.changed.notify_waiters();
        Ok(())
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permissions")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A request that is withdrawn when whoever asked goes away.
struct Open<'a> {
    permissions: &'a Permissions,
    id: Option<String>,
}

impl Open<'_> {
    /// The request is over; withdrawn only if nobody answered it.
    async fn close_unless(mut self, unanswered: bool) {
        if let (Some(id), true) = (self.id.take(), unanswered) {
            // Whoever answers at the last moment is as late as whoever answers after it.
            drop(self.permissions.end(id, Ending::Withdrawn).await);
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let permissions = self.permissions.clone();
            let withdrawing = async move { permissions.end(id, Ending::Withdrawn).await };
            self.permissions.withdrawing.spawn_on(withdrawing, &runtime);
        }
    }
}
