//! [`Permissions`]: stores permission requests, and waits for their answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plexus_mcp_core::Context;
use plexus_mcp_store::Store;
use plexus_mcp_wire::Raw;
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

/// How long a request waits for an answer, by default.
pub const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

/// How often the database is polled for answers of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long ended requests are stored.
const ENDED_RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// The permission requests of agents. Cheap to clone.
#[derive(Clone)]
pub struct Permissions {
    store: Store,
    changed: Arc<Notify>,
    withdrawing: TaskTracker,
}

/// A permission request of an agent.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct Request {
    /// The session of the agent, if it is known.
    pub session_id: Option<String>,
    /// The tool that the agent wants to call.
    pub tool_name: String,
    /// The id of the tool call.
    pub tool_use_id: Option<String>,
    /// The input of the tool: a JSON object.
    pub input: Raw,
}

/// A request without an answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pending {
    /// The request's id, for `respond`
    pub approval_id: String,
    /// The session of the agent
    pub session_id: Option<String>,
    /// The tool that the agent wants to call
    pub tool_name: String,
    /// The id of the tool call
    pub tool_use_id: Option<String>,
    /// The input of the tool
    #[schemars(with = "Map<String, Value>")]
    pub input: Raw,
    /// When the request was made
    pub created_at: String,
    /// When it expires and is denied
    pub expires_at: String,
}

/// The answer to a permission request.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has only these answers"
)]
pub enum Decision {
    /// The agent may call the tool.
    Allow {
        /// The input to use instead of the requested one.
        updated_input: Option<Raw>,
    },
    /// The agent may not call the tool.
    Deny {
        /// The reason, which the agent reads.
        message: String,
    },
}

impl Permissions {
    /// Uses the requests in `store`, which was opened with their [`MIGRATIONS`](super::MIGRATIONS).
    pub fn new(store: Store) -> Self {
        Self {
            store,
            changed: Arc::default(),
            withdrawing: TaskTracker::new(),
        }
    }

    /// Stores a request and waits for its answer, for `timeout` at most. The user of `caller` is
    /// asked, if there is one and its client supports elicitation; other clients may answer with
    /// [`Permissions::respond`].
    ///
    /// Dropping the future withdraws the request.
    ///
    /// # Errors
    /// The store failed.
    pub async fn permit(
        &self,
        request: Request,
        timeout: Duration,
        caller: Option<&Context>,
        told: impl FnOnce(&Pending),
    ) -> Result<Decision, LoopbackError> {
        let deadline = Instant::now() + timeout;
        let id = format!("permission_{}", Uuid::now_v7().simple());
        // The request may be stored even if this future is dropped meanwhile.
        let open = Open {
            permissions: self,
            id: Some(id.clone()),
        };
        let pending = self.open(id, request, timeout).await?;
        told(&pending);
        let answered = async {
            let Some(answer) = question::ask_if_supported(&pending, caller).await else {
                // Another client may still answer.
                return std::future::pending().await;
            };
            // Another client may have answered first.
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
            let seconds = timeout.as_secs();
            let message = format!("no answer within {seconds} seconds");
            Ok(Decision::Deny { message })
        })
    }

    /// Answers a request.
    ///
    /// # Errors
    /// No request has this id, or the request is no longer pending.
    pub async fn respond(
        &self,
        approval_id: impl Into<String>,
        decision: Decision,
    ) -> Result<(), LoopbackError> {
        self.end(approval_id.into(), Ending::Decided(decision))
            .await
    }

    /// Returns the requests without an answer, of this session or of all, the oldest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn pending(&self, session_id: Option<String>) -> Result<Vec<Pending>, LoopbackError> {
        let now = Timestamp::now();
        self.store
            .read(move |db| tables::pending(db, session_id.as_deref(), now))
            .await
    }

    /// Like [`Self::pending`], but waits until there is a request, for `timeout` at most.
    ///
    /// # Errors
    /// The store failed.
    pub async fn wait(
        &self,
        session_id: Option<String>,
        timeout: Duration,
    ) -> Result<Vec<Pending>, LoopbackError> {
        let deadline = Instant::now() + timeout;
        loop {
            let changed = self.changed.notified();
            let pending = self.pending(session_id.clone()).await?;
            if !pending.is_empty() || Instant::now() >= deadline {
                return Ok(pending);
            }
            let look = deadline.min(Instant::now() + POLL_INTERVAL);
            drop(timeout_at(look, changed).await);
        }
    }

    async fn open(
        &self,
        id: String,
        request: Request,
        timeout: Duration,
    ) -> Result<Pending, LoopbackError> {
        let now = Timestamp::now();
        let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
        let expires_at = now.saturating_add(timeout).unwrap_or(Timestamp::MAX);
        let pending = self.store.write(move |db| {
            tables::forget(
                db,
                now.saturating_sub(ENDED_RETENTION)
                    .unwrap_or(Timestamp::MIN),
            )?;
            tables::insert(db, &id, &request, now, expires_at)
        });
        let pending = pending.await?;
        self.changed.notify_waiters();
        Ok(pending)
    }

    async fn decided(&self, id: &str) -> Result<Decision, LoopbackError> {
        loop {
            let changed = self.changed.notified();
            let request_id = id.to_owned();
            let decision = self.store.read(move |db| tables::decision(db, &request_id));
            if let Some(decision) = decision.await? {
                return Ok(decision);
            }
            drop(tokio::time::timeout(POLL_INTERVAL, changed).await);
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

/// Withdraws a request when it is dropped.
struct Open<'a> {
    permissions: &'a Permissions,
    id: Option<String>,
}

impl Open<'_> {
    /// Ends the request. It is withdrawn only if it has no answer.
    async fn close_unless(mut self, unanswered: bool) {
        if let (Some(id), true) = (self.id.take(), unanswered) {
            // An answer that comes at the same time is treated like one that comes too late.
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
