//! One member of a hub.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::OptionFuture;
use plexus_mcp_client::child::Grace;
use plexus_mcp_client::{
    Definition, Prepare, ServerState, StartSlots, Status, Supervision, Upstream,
};
use plexus_mcp_config::Scope;
use plexus_mcp_core::{Catalogue, Fault, Service};
use plexus_mcp_protocol::messages::{Implementation, ServerCapabilities};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::catalogue_cache::CachedOffer;
use crate::latest_wins::LatestWins;

/// How long lists wait for a server whose offer is not known yet, unless its configuration says
/// otherwise. Many clients list once, right after they connect, and never again.
pub const LIST_STARTUP_TIMEOUT: Duration = Duration::from_secs(8);

/// The specification of a member.
#[non_exhaustive]
pub struct MemberSpec {
    /// Its name, which prefixes the names of its entries.
    pub name: String,
    /// The kind of member.
    pub kind: MemberKind,
    /// Changes whenever it must be reconnected.
    pub fingerprint: [u8; 32],
    /// The scope of its configuration file; `None` for a server that comes from no file.
    pub scope: Option<Scope>,
    /// Whether its configuration disables it.
    pub disabled: bool,
    /// Whether it is reconnected after it fails or is lost.
    pub auto_restart: bool,
    /// How long lists wait for it while its offer is unknown.
    pub startup_wait: Duration,
    /// Selects the tools that are shown.
    pub shows_tool: ToolFilter,
    /// Its names are shown without a prefix, unless they are taken.
    pub plain_names: bool,
    /// Resolves a tool name that no member shows to the member's own name, or returns why there is
    /// none.
    pub resolve_tool: Option<Resolve>,
}

/// Selects the tools that are shown.
pub type ToolFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// See [`MemberSpec::resolve_tool`].
pub type Resolve = Arc<dyn Fn(&str) -> Result<String, Fault> + Send + Sync>;

impl MemberSpec {
    /// An enabled server with all its tools, which is reconnected after it is lost.
    pub fn new(name: impl Into<String>, kind: MemberKind, fingerprint: [u8; 32]) -> Self {
        Self {
            name: name.into(),
            kind,
            fingerprint,
            scope: None,
            disabled: false,
            auto_restart: true,
            startup_wait: LIST_STARTUP_TIMEOUT,
            shows_tool: Arc::new(|_| true),
            plain_names: false,
            resolve_tool: None,
        }
    }
}

/// An upstream server or a service in this process.
#[expect(
    clippy::exhaustive_enums,
    reason = "there is no further kind of member"
)]
pub enum MemberKind {
    /// A server with a known definition.
    Upstream(Box<Definition>),
    /// A server whose definition takes time to make, for example because secrets must be fetched.
    /// It is made again for every connection.
    Deferred(Prepare),
    /// A service in this process.
    Local(Arc<dyn Service>),
    /// A server that is configured but cannot be connected at present.
    Unavailable {
        /// Its reported state.
        state: ServerState,
        /// The reason, and what to do about it.
        reason: String,
    },
}

impl MemberKind {
    /// Whether it is a server to connect to.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::Deferred(_))
    }
}

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

/// A member of a hub.
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) plain_names: bool,
    pub(crate) resolve_tool: Option<Resolve>,
    pub(crate) auto_restart: bool,
    pub(crate) scope: Option<Scope>,
    nature: Nature,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    shows_tool: RwLock<ToolFilter>,
    enabled: AtomicBool,
    /// Whether its configuration disables it; users may override that while it runs.
    configured_off: AtomicBool,
    /// How long it may take to answer before it counts as silent; `None` if lists do not wait for it,
    /// for example because it recently was silent.
    startup_wait: Option<Duration>,
    /// Until when lists wait for it.
    startup_deadline: Option<Instant>,
    latency: Mutex<Option<Duration>>,
    calls: TaskTracker,
    /// Cancelled when it is removed from the hub.
    pub(crate) over: CancellationToken,
    /// Orders the writes of its offer to the catalogue cache.
    pub(crate) cache_writes: LatestWins,
}

/// The running part of a member, by its kind.
enum Nature {
    Local(Arc<dyn Service>),
    Server(Upstream),
    Unavailable(Status, watch::Sender<Arc<Catalogue>>),
}

impl Member {
    /// `known` is its cached offer; `was_silent` says that it did not answer when it was last
    /// started.
    pub(crate) fn new(
        spec: MemberSpec,
        known: Option<CachedOffer>,
        was_silent: bool,
        slots: StartSlots,
        over: CancellationToken,
    ) -> Self {
        let name: Arc<str> = spec.name.into();
        let mut supervision = Supervision::default();
        supervision.name = Some(Arc::clone(&name));
        supervision.auto_restart = spec.auto_restart;
        supervision.known = known.map(|known| (known.catalogue, known.revision));
        supervision.slots = slots;
        let nature = match spec.kind {
            MemberKind::Local(service) => Nature::Local(service),
            MemberKind::Upstream(definition) => {
                Nature::Server(Upstream::supervised(*definition, supervision))
            }
            MemberKind::Deferred(prepare) => {
                Nature::Server(Upstream::deferred(prepare, supervision))
            }
            MemberKind::Unavailable { state, reason } => Nature::Unavailable(
                Status::new(state, Some(reason)),
                watch::Sender::new(Arc::new(nothing())),
            ),
        };
        let catalogue = match &nature {
            Nature::Local(service) => service.catalogue(),
            Nature::Server(upstream) => upstream.catalogue(),
            Nature::Unavailable(_, nothing) => nothing.subscribe(),
        };
        let is_awaited = !was_silent && !spec.startup_wait.is_zero();
        let startup_wait = is_awaited.then_some(spec.startup_wait);
        Self {
            name,
            fingerprint: spec.fingerprint,
            plain_names: spec.plain_names,
            resolve_tool: spec.resolve_tool,
            auto_restart: spec.auto_restart,
            scope: spec.scope,
            nature,
            catalogue,
            shows_tool: RwLock::new(spec.shows_tool),
            enabled: AtomicBool::new(!spec.disabled),
            configured_off: AtomicBool::new(spec.disabled),
            startup_wait,
            startup_deadline: startup_wait.map(|wait| Instant::now() + wait),
            latency: Mutex::default(),
            calls: TaskTracker::new(),
            over,
            cache_writes: LatestWins::default(),
        }
    }

    /// Whether `spec` can be served by the existing connection.
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

    /// Takes over the settings that need no new connection. Returns whether it was enabled.
    pub(crate) fn adopt(&self, spec: MemberSpec) -> bool {
        *self
            .shows_tool
            .write()
            .unwrap_or_else(PoisonError::into_inner) = spec.shows_tool;
        let was_configured_off = self.configured_off.swap(spec.disabled, Ordering::Relaxed);
        // A user's choice to enable or disable it holds until the configuration changes.
        if was_configured_off == spec.disabled {
            return false;
        }
        let was_enabled = self.enable(!spec.disabled);
        !was_enabled && !spec.disabled
    }

    /// Whether a user disabled it, and not its configuration.
    pub(crate) fn was_turned_off_by_hand(&self) -> bool {
        !self.is_enabled() && !self.configured_off.load(Ordering::Relaxed)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Enables or disables it, and returns its previous state. Its connection stays open (C39).
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

    /// The upstream, if it is a server.
    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        match &self.nature {
            Nature::Server(upstream) => Some(upstream),
            Nature::Local(_) | Nature::Unavailable(..) => None,
        }
    }

    /// A receiver of its catalogue, as far as it is known, and of all changes.
    pub(crate) fn watch_catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.clone()
    }

    /// Its catalogue, as far as it is known.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Whether its offer is known, at least from the cache.
    pub(crate) fn is_known(&self) -> bool {
        self.upstream().is_none_or(Upstream::is_known)
    }

    /// Until when lists wait for it: its offer is not known yet, and it has not failed.
    pub(crate) fn awaited_until(&self) -> Option<Instant> {
        let upstream = self.upstream()?;
        let deadline = self.startup_deadline?;
        let is_awaited = self.is_enabled()
            && !upstream.is_known()
            && !upstream.is_failing()
            && Instant::now() < deadline;
        is_awaited.then_some(deadline)
    }

    /// Waits until its startup wait is over and an attempt to connect it has taken three quarters of
    /// that time, without an answer or a failure. A server that waited long for other programs to
    /// start gets the time from its own start; one that was started a moment late is recorded when
    /// the lists stop waiting for it, because Plexus may end soon after. Never ends if that does not
    /// happen.
    pub(crate) async fn silent(&self) {
        let (Some(upstream), Some(wait), Some(deadline)) =
            (self.upstream(), self.startup_wait, self.startup_deadline)
        else {
            return pending().await;
        };
        let mut started_at = upstream.started_at();
        loop {
            let started = *started_at.borrow_and_update();
            let silent_at = started.map(|started| deadline.max(started + wait * 3 / 4));
            tokio::select! {
                changed = started_at.changed() => if changed.is_err() {
                    return pending().await;
                },
                Some(()) = OptionFuture::from(silent_at.map(sleep_until)) => {
                    if upstream.is_known() || upstream.is_failing() {
                        return pending().await;
                    }
                    return;
                }
            }
        }
    }

    /// Waits until its offer is known, or it has failed, or its startup wait is over.
    pub(crate) async fn settled(&self) {
        let (Some(upstream), Some(deadline)) = (self.upstream(), self.awaited_until()) else {
            return;
        };
        let mut status = upstream.status();
        let settled = |_: &Status| upstream.is_known() || upstream.is_failing();
        drop(tokio::time::timeout_at(deadline, status.wait_for(settled)).await);
    }

    /// The status of its connection; `None` for a service in this process. A server that is being
    /// connected again keeps the reason why it failed before.
    pub(crate) fn condition(&self) -> Option<Status> {
        match &self.nature {
            Nature::Local(_) => None,
            Nature::Server(upstream) => {
                let mut status = upstream.status().borrow().clone();
                if status.state == ServerState::Pending
                    && status.reason.is_none()
                    && upstream.is_failing()
                    && let Some((_, error)) = upstream.history().last_error
                {
                    status.reason = Some(format!("starting again; before: {error}"));
                }
                Some(status)
            }
            Nature::Unavailable(status, _) => Some(status.clone()),
        }
    }

    /// How long the last call that it answered took, without calls that waited for it to start.
    pub(crate) fn latency(&self) -> Option<Duration> {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answered_within(&self, latency: Duration) {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = Some(latency);
    }

    /// Starts to connect it in the background, unless that has begun before.
    pub(crate) fn start(&self) {
        if let Some(upstream) = self.upstream() {
            upstream.start();
        }
    }

    /// Its offer, for a successor whose own offer is not known yet.
    pub(crate) fn known(&self) -> Option<CachedOffer> {
        let upstream = self.upstream()?;
        let known = || CachedOffer {
            catalogue: self.catalogue(),
            revision: upstream.history().revision,
        };
        upstream.is_known().then(known)
    }

    /// Admits a call once its server is connected. `None` if the member leaves before that: nothing
    /// was sent, so the call goes to the member's successor.
    ///
    /// # Errors
    /// Why the server cannot be connected. A server that requires a sign-in is called, because the
    /// call asks for it.
    pub(crate) async fn admit(&self) -> Result<Option<TaskTrackerToken>, Fault> {
        if self.is_enabled()
            && let Some(upstream) = self.upstream()
            && !upstream.is_connected()
        {
            let ready = Box::pin(self.over.run_until_cancelled(upstream.ready()));
            match ready.await {
                None => return Ok(None),
                Some(Err(error)) if !error.wants_user() => {
                    return Err(self.failure(&error.for_caller()));
                }
                Some(_) => {}
            }
        }
        Ok(self.enter())
    }

    /// Admits a call, unless the member is leaving. While the token is held, the member waits for
    /// the call.
    fn enter(&self) -> Option<TaskTrackerToken> {
        // The token is taken first, so that the member cannot leave in between.
        let token = self.calls.token();
        (!self.over.is_cancelled()).then_some(token)
    }

    /// The service that answers its calls. A server is connected by its first call, which waits for
    /// it.
    pub(crate) fn service(&self) -> Result<Arc<dyn Service>, Fault> {
        if !self.is_enabled() {
            return Err(Fault::Internal(self.disabled_error()));
        }
        match &self.nature {
            Nature::Local(service) => Ok(Arc::clone(service)),
            Nature::Server(upstream) => Ok(Arc::new(upstream.clone())),
            Nature::Unavailable(status, _) => Err(self.unavailable(status)),
        }
    }

    /// Connects it, unless it is connected.
    pub(crate) async fn connect(&self) -> Result<(), Fault> {
        match &self.nature {
            Nature::Local(_) => Ok(()),
            Nature::Server(upstream) => {
                let connected = upstream.connect().await;
                connected.map_err(|error| self.failure(&error.to_string()))
            }
            Nature::Unavailable(status, _) => Err(self.unavailable(status)),
        }
    }

    /// Closes its connection and opens a new one.
    pub(crate) async fn reconnect(&self) -> Result<(), Fault> {
        let name = &self.name;
        if !self.is_enabled() {
            return Err(Fault::Internal(self.disabled_error()));
        }
        match &self.nature {
            Nature::Local(_) => {
                let why = format!("{name:?} is a part of Plexus, and has no connection");
                Err(Fault::InvalidParams(why))
            }
            Nature::Server(upstream) => {
                let reconnected = upstream.reconnect().await;
                reconnected.map_err(|error| self.failure(&error.to_string()))
            }
            Nature::Unavailable(status, _) => Err(self.unavailable(status)),
        }
    }

    /// Waits until the server is connected, like a call does.
    pub(crate) async fn ready(&self) -> Result<(), Fault> {
        match &self.nature {
            Nature::Local(_) => Ok(()),
            Nature::Server(upstream) => {
                let ready = upstream.ready().await;
                ready.map_err(|error| self.failure(&error.for_caller()))
            }
            Nature::Unavailable(status, _) => Err(self.unavailable(status)),
        }
    }

    /// Disconnects it. Its calls may take `calls` to finish, unless the hub closes, and its process
    /// `process` to exit.
    pub(crate) async fn leave(&self, calls: Duration, process: Grace, closing: CancellationToken) {
        self.over.cancel();
        self.calls.close();
        let finished = tokio::time::timeout(calls, self.calls.wait());
        if let Some(Err(_elapsed)) = closing.run_until_cancelled(finished).await {
            tracing::debug!(
                server = &*self.name,
                "calls of a removed server are cancelled"
            );
        }
        if let Some(upstream) = self.upstream() {
            upstream.disconnect_within(process).await;
        }
    }

    /// The error of a call while it is disabled, and what to do about it.
    pub(crate) fn disabled_error(&self) -> String {
        let name = &*self.name;
        format!("the server {name:?} is disabled; to enable it: plexus servers toggle {name} --on")
    }

    fn unavailable(&self, status: &Status) -> Fault {
        self.failure(status.reason.as_deref().unwrap_or_default())
    }

    fn failure(&self, reason: &str) -> Fault {
        Fault::Internal(format!(
            "the server {:?} cannot be connected: {reason}",
            &*self.name
        ))
    }
}

/// An empty catalogue.
pub(crate) fn nothing() -> Catalogue {
    Catalogue::new(Implementation::new("", ""), ServerCapabilities::default())
}
