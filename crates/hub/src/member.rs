//! One server of a hub.

mod connection;
mod sign_in;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use plexus_client::{Definition, State, Status};
use plexus_mcp::messages::{Implementation, ServerCapabilities};
use plexus_service::{Boxed, Catalogue, Fault, Service};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::remembered::Known;
use crate::turns::Turns;
pub(crate) use connection::Connection;

/// A server that is to be part of a hub.
#[non_exhaustive]
pub struct MemberSpec {
    /// Its name, which its entries' names begin with.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
    /// Changes whenever its connection must be made anew.
    pub fingerprint: [u8; 32],
    /// It is configured, but turned off.
    pub disabled: bool,
    /// It is connected again when it is lost.
    pub auto_restart: bool,
    /// Which of its tools are shown.
    pub shows_tool: ToolFilter,
    /// Its names are shown as they are, unless another has them already.
    pub plain_names: bool,
    /// Finds the tool that is meant by a name that nobody shows, or says why there is none.
    pub resolve_tool: Option<Resolve>,
}

/// Says which tools are shown.
pub type ToolFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// See [`MemberSpec::resolve_tool`].
pub type Resolve = Arc<dyn Fn(&str) -> Result<String, Fault> + Send + Sync>;

impl MemberSpec {
    /// A server that is turned on, shown whole, and connected once.
    pub fn new(name: impl Into<String>, kind: MemberKind, fingerprint: [u8; 32]) -> Self {
        Self {
            name: name.into(),
            kind,
            fingerprint,
            disabled: false,
            auto_restart: false,
            shows_tool: Arc::new(|_| true),
            plain_names: false,
            resolve_tool: None,
        }
    }
}

/// What a member is.
#[expect(
    clippy::exhaustive_enums,
    reason = "there is no further kind of member"
)]
pub enum MemberKind {
    /// A server that is connected.
    Upstream(Box<Definition>),
    /// A server whose definition takes time to make, as secrets must be fetched for it. It is made
    /// anew for every connection.
    Deferred(Prepare),
    /// A service in this process.
    Local(Arc<dyn Service>),
    /// A server that is known but cannot be connected as things are.
    Unavailable {
        /// What it counts as.
        state: State,
        /// Why, and what to do about it.
        reason: String,
    },
}

impl MemberKind {
    /// Whether it is a server that is connected.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::Deferred(_))
    }
}

/// Makes a definition, or says why it cannot be made.
pub type Prepare = Arc<dyn Fn() -> Boxed<Result<Definition, String>> + Send + Sync>;

impl std::fmt::Debug for MemberKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upstream(definition) => f.debug_tuple("Upstream").field(definition).finish(),
            Self::Deferred(_) => f.write_str("Deferred(..)"),
            Self::Local(_) => f.write_str("Local(..)"),
            Self::Unavailable { state, reason } => f
                .debug_struct("Unavailable")
                .field("state", state)
                .field("reason", reason)
                .finish(),
        }
    }
}

impl std::fmt::Debug for MemberSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberSpec")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A server that is part of a hub.
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) plain_names: bool,
    pub(crate) resolve_tool: Option<Resolve>,
    pub(crate) auto_restart: bool,
    nature: Nature,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    shows_tool: RwLock<ToolFilter>,
    enabled: AtomicBool,
    /// Whether its configuration turns it off; people may do otherwise while it runs.
    configured_off: AtomicBool,
    /// Whether it was waited for in vain in an earlier process.
    pub(crate) was_late: bool,
    /// Whether it was begun to connect it in the background.
    started: AtomicBool,
    latency: Mutex<Option<Duration>>,
    calls: TaskTracker,
    /// Fires when it is no longer part of the hub.
    pub(crate) over: CancellationToken,
    /// Fires when the calls that it still had are no longer waited for.
    closing: CancellationToken,
    /// What of it was kept last.
    pub(crate) kept: Turns,
}

/// What a member is, once it is one.
enum Nature {
    Local(Arc<dyn Service>),
    Server(Arc<Connection>),
    Unavailable(Status, watch::Sender<Arc<Catalogue>>),
}

impl Member {
    /// `known` is what it offered when it was last connected; `was_late`, if it was waited for in
    /// vain instead.
    pub(crate) fn new(
        spec: MemberSpec,
        known: Option<Known>,
        was_late: bool,
        over: CancellationToken,
    ) -> Self {
        let nature = match spec.kind {
            MemberKind::Local(service) => Nature::Local(service),
            MemberKind::Upstream(definition) => {
                let prepare: Prepare = Arc::new(move || {
                    let definition = Definition::clone(&definition);
                    Box::pin(std::future::ready(Ok(definition)))
                });
                Nature::Server(Connection::new(prepare, known))
            }
            MemberKind::Deferred(prepare) => Nature::Server(Connection::new(prepare, known)),
            MemberKind::Unavailable { state, reason } => Nature::Unavailable(
                Status::new(state, Some(reason)),
                watch::Sender::new(Arc::new(nothing())),
            ),
        };
        let catalogue = match &nature {
            Nature::Local(service) => service.catalogue(),
            Nature::Server(connection) => connection.catalogue(),
            Nature::Unavailable(_, nothing) => nothing.subscribe(),
        };
        Self {
            name: spec.name.into(),
            fingerprint: spec.fingerprint,
            plain_names: spec.plain_names,
            resolve_tool: spec.resolve_tool,
            auto_restart: spec.auto_restart,
            nature,
            catalogue,
            shows_tool: RwLock::new(spec.shows_tool),
            enabled: AtomicBool::new(!spec.disabled),
            configured_off: AtomicBool::new(spec.disabled),
            was_late,
            started: AtomicBool::new(false),
            latency: Mutex::default(),
            calls: TaskTracker::new(),
            over,
            closing: CancellationToken::new(),
            kept: Turns::default(),
        }
    }

    /// Whether `spec` needs no other connection than this.
    pub(crate) fn serves(&self, spec: &MemberSpec) -> bool {
        let same_kind = match (&self.nature, &spec.kind) {
            (Nature::Local(_), MemberKind::Local(_))
            | (Nature::Server(_), MemberKind::Upstream(_) | MemberKind::Deferred(_)) => true,
            (Nature::Unavailable(known, _), MemberKind::Unavailable { state, reason }) => {
                known.state == *state && known.reason.as_ref() == Some(reason)
            }
            _ => false,
        };
        same_kind
            && self.fingerprint == spec.fingerprint
            && self.auto_restart == spec.auto_restart
            && self.plain_names == spec.plain_names
    }

    /// Takes over what can change without a new connection. Returns whether it was turned on.
    pub(crate) fn adopt(&self, spec: MemberSpec) -> bool {
        *self
            .shows_tool
            .write()
            .unwrap_or_else(PoisonError::into_inner) = spec.shows_tool;
        let was_off = self.configured_off.swap(spec.disabled, Ordering::Relaxed);
        // Whoever turned it on or off by hand meant it, until the configuration says something new.
        was_off != spec.disabled && !self.enable(!spec.disabled) && !spec.disabled
    }

    /// Whether its configuration turned it off, unlike somebody who did so by hand.
    pub(crate) fn was_turned_off_by_hand(&self) -> bool {
        !self.is_enabled() && !self.configured_off.load(Ordering::Relaxed)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Turns it on or off, and returns what it was. Its connection stays (C39).
    pub(crate) fn enable(&self, enabled: bool) -> bool {
        self.enabled.swap(enabled, Ordering::Relaxed)
    }

    pub(crate) fn shows_tool(&self) -> ToolFilter {
        Arc::clone(
            &self
                .shows_tool
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Its connection, if it is a server.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        match &self.nature {
            Nature::Server(connection) => Some(connection),
            Nature::Local(_) | Nature::Unavailable(..) => None,
        }
    }

    /// What it offers, as far as is known, and all changes.
    pub(crate) fn watch_catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.clone()
    }

    /// What it offers, as far as is known.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Whether it is known what it offers, if only from an earlier time.
    pub(crate) fn is_known(&self) -> bool {
        self.connection()
            .is_none_or(|connection| connection.is_known())
    }

    /// Waits until it is known what it offers, or why it cannot be known.
    pub(crate) async fn known_or_failed(&self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let mut status = connection.status();
        let settled = |status: &Status| connection.is_known() || status.state != State::Pending;
        drop(status.wait_for(settled).await);
    }

    /// How its connection is doing; `None` for a service in this process.
    pub(crate) fn condition(&self) -> Option<Status> {
        match &self.nature {
            Nature::Local(_) => None,
            Nature::Server(connection) => Some(connection.status().borrow().clone()),
            Nature::Unavailable(status, _) => Some(status.clone()),
        }
    }

    /// How long its last answer took.
    pub(crate) fn latency(&self) -> Option<Duration> {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answered_within(&self, latency: Duration) {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = Some(latency);
    }

    /// Whether it is still to be connected in the background: that is begun only once, lest what
    /// failed or was disconnected come back by itself.
    pub(crate) fn is_to_be_started(&self) -> bool {
        self.connection().is_some() && !self.started.swap(true, Ordering::Relaxed)
    }

    /// What is known of it, for a successor whose own offer is not known yet.
    pub(crate) fn known(&self) -> Option<Known> {
        let connection = self.connection()?;
        let known = || Known {
            catalogue: self.catalogue(),
            revision: connection.facts().revision,
            asks: connection.asks().is_known(),
        };
        connection.is_known().then(known)
    }

    /// Lets a call in, unless the member is leaving. It is waited for while the token is kept.
    pub(crate) fn enter(&self) -> Option<TaskTrackerToken> {
        // The token comes first, lest the member leave in between.
        let token = self.calls.token();
        (!self.over.is_cancelled()).then_some(token)
    }

    /// The service, connected if it never was: the first call starts a server that waits for it.
    /// One that failed or was lost is not connected again by a call (C35).
    pub(crate) async fn ready(&self) -> Result<Arc<dyn Service>, Fault> {
        if !self.is_enabled() {
            let why = format!("the server {:?} is turned off", &*self.name);
            return Err(Fault::Internal(why));
        }
        if let Nature::Local(service) = &self.nature {
            return Ok(Arc::clone(service));
        }
        let condition = self.condition();
        if condition.is_some_and(|status| status.state == State::Pending) {
            // Every call has a place for what it may wait for; that this is small matters to all.
            Box::pin(self.connect()).await?;
        }
        let connected = self.connection().and_then(Connection::service);
        connected.ok_or_else(|| {
            let status = self.condition();
            let reason = status.and_then(|status| status.reason);
            self.failure(&reason.unwrap_or_else(|| "it was disconnected".to_owned()))
        })
    }

    /// Connects it, unless it is connected.
    pub(crate) async fn connect(&self) -> Result<(), Fault> {
        let connection = match &self.nature {
            Nature::Local(_) => return Ok(()),
            Nature::Server(connection) => connection,
            Nature::Unavailable(status, _) => {
                return Err(self.failure(status.reason.as_deref().unwrap_or_default()));
            }
        };
        let connecting = self.closing.run_until_cancelled(connection.connect());
        let gone = || self.failure("it was taken out of the configuration");
        let connected = connecting.await.ok_or_else(gone)?;
        connected.map_err(|reason| self.failure(&reason))
    }

    /// Connects it now, and again when it is lost, if it is to be.
    pub(crate) async fn keep_connected(&self) {
        if let Some(connection) = self.connection() {
            connection.keep_connected(self.auto_restart).await;
        }
    }

    /// Ends it. Calls that it has may finish for as long as `grace`.
    pub(crate) async fn leave(&self, grace: Duration) {
        self.over.cancel();
        self.calls.close();
        drop(tokio::time::timeout(grace, self.calls.wait()).await);
        self.closing.cancel();
        if let Some(connection) = self.connection() {
            connection.disconnect().await;
        }
    }

    fn failure(&self, reason: &str) -> Fault {
        Fault::Internal(format!(
            "the server {:?} cannot be connected: {reason}",
            &*self.name
        ))
    }
}

/// What somebody offers who offers nothing.
fn nothing() -> Catalogue {
    Catalogue::new(Implementation::new("", ""), ServerCapabilities::default())
}
