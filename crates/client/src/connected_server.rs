//! A connected server: calls, lists, subscriptions and sessions on one connection.

mod ask;
mod failure;
mod handshake;
mod listening;
mod lists;
mod session;
mod session_check;
mod session_for;
mod session_pool;
mod start_backoff;
mod stateless;
mod subscribed;
mod visit;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plexus_mcp_core::{Boxed, Call, Catalogue, EventSender, Log, Peer, Progress, Section};
use plexus_mcp_protocol::messages::{ClientCapabilities, LoggingMessageParams};
use plexus_mcp_protocol::{Era, Fault, method};
use plexus_mcp_wire::{Notification, Object, Raw};
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, mpsc, oneshot, watch as signal};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::child::Grace;
use crate::connect::{Connected, Quirk};
use crate::definition::{Definition, Target};
use crate::error_text::brief;
use crate::link::{LinkError, MAX_QUEUED_MESSAGES};
use crate::listing::{ListProblem, Listing, Quarantined};
use crate::lock::lock;
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::rpc::{Caller, ConnectionTasks, ProtocolViolations, RpcFailure, Update};
use crate::server_facts::ServerFacts;
use crate::upstream::StartSlots;
pub(crate) use failure::CallFailure;
pub(crate) use session::Session;
use session_for::HandshakeEra;
use session_pool::SessionPool;

/// How long to wait for the listen stream of a stateless server before its lists are fetched.
const LISTEN_START_TIMEOUT: Duration = Duration::from_millis(500);

/// How often idle sessions are evicted.
const SESSION_EVICTION_INTERVAL: Duration = Duration::from_mins(1);

/// A connected server.
pub(crate) struct ConnectedServer {
    pub(crate) definition: Arc<Definition>,
    /// The client info that is sent to the server.
    client_info: Raw,
    /// The client capabilities that were declared in the server's own session.
    profile: ClientCapabilities,
    /// The session that belongs to no caller. It carries lists and subscriptions, and the calls of
    /// callers that need no session of their own.
    pub(crate) own: Arc<Session>,
    others: SessionPool,
    pub(crate) facts: ServerFacts,
    pub(crate) quirks: Vec<Quirk>,
    listing: Mutex<Listing>,
    catalogue: signal::Sender<Arc<Catalogue>>,
    subscriptions: Arc<ResourceSubscriptions>,
    /// Held while lists are fetched: one fetch at a time.
    relisting: AsyncMutex<()>,
    /// Which lists are known to have changed.
    stale: Mutex<Vec<Section>>,
    changed: Notify,
    list_problems_changed: Notify,
    /// Serializes calls, for servers that take one call at a time. A call holds the permit while it
    /// asks its caller something: it is still running, and the server could not take another.
    serializer: Option<Semaphore>,
    /// Whether handshake-era callers get sessions of their era, although the server was detected as
    /// stateless.
    handshake_era: Mutex<HandshakeEra>,
    /// A request of a caller was answered on this connection.
    answered: AtomicBool,
    /// Passes the futures of sessions that are opened later to the upkeep.
    opened: mpsc::Sender<Boxed<()>>,
    tasks: ConnectionTasks,
    /// For processes of principals, if each principal has its own.
    start_slots: StartSlots,
    over: CancellationToken,
}

impl ConnectedServer {
    /// Fetches the lists. Returns the connected server, and a future that receives its messages and
    /// keeps its lists and subscriptions current while it is polled.
    ///
    /// # Errors
    /// The connection ended before the lists were complete.
    pub(crate) async fn settle(
        definition: Arc<Definition>,
        connected: Connected,
        catalogue: signal::Sender<Arc<Catalogue>>,
        is_known: bool,
        subscriptions: Arc<ResourceSubscriptions>,
        tasks: ConnectionTasks,
        start_slots: StartSlots,
    ) -> Result<(Arc<Self>, Boxed<()>), LinkError> {
        let Connected {
            rpc,
            facts,
            stray,
            quirks,
        } = connected;
        let mut listing = Listing::new(&facts);
        if is_known {
            // If a list cannot be fetched, its last known entries are kept.
            listing.adopt_lists(&catalogue.borrow());
        }
        let names_calls = names_calls(&definition, &quirks);
        let may_speak_both = facts.revision.era() == Era::Stateless
            && definition.era.is_none()
            && matches!(definition.target, Target::Http(_));
        let (opened, sessions) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let server = Arc::new(Self {
            serializer: definition.serialize.then(|| Semaphore::new(1)),
            handshake_era: Mutex::new(if may_speak_both {
                HandshakeEra::Possible
            } else {
                HandshakeEra::Unsupported
            }),
            answered: AtomicBool::new(false),
            opened,
            client_info: definition.client_info.to_raw(),
            profile: definition.capabilities.profile(),
            others: SessionPool::new(definition.sessions),
            definition,
            own: Arc::new(Session::new(rpc, facts.revision, names_calls)),
            facts,
            quirks,
            listing: Mutex::new(listing),
            catalogue,
            subscriptions,
            relisting: AsyncMutex::default(),
            stale: Mutex::default(),
            changed: Notify::new(),
            list_problems_changed: Notify::new(),
            tasks,
            start_slots,
            over: CancellationToken::new(),
        });
        // Dropping the future before the lists are complete closes the connection.
        let unless_settled = StopOnDrop(Some(Arc::clone(&server)));
        if server.facts.revision.era() == Era::Stateless {
            server.own.rpc.set_stateless();
        }
        let (listening, listened) = oneshot::channel();
        let mut upkeep: Boxed<()> = {
            let server = Arc::clone(&server);
            Box::pin(server.upkeep(stray, sessions, listening))
        };
        let listing = async {
            // Listen first, so that a change during the listing is not lost.
            drop(tokio::time::timeout(LISTEN_START_TIMEOUT, listened).await);
            server.find_completions().await;
            server.list(&Section::ALL).await;
            // Lists that failed are fetched again later.
            server.changed.notify_one();
        };
        tokio::select! {
            () = &mut upkeep => upkeep = Box::pin(std::future::pending()),
            () = listing => {}
        }
        if server.own.rpc.is_over() {
            // The next attempt must not find the process of this one.
            server.own.rpc.close().await;
            return Err(server.own.rpc.end_reason());
        }
        unless_settled.defuse();
        Ok((server, upkeep))
    }

    /// Receives messages, and keeps lists and subscriptions current, until the connection is over.
    /// `listening` is dropped when the stream for change notifications is open.
    async fn upkeep(
        self: Arc<Self>,
        stray: mpsc::Receiver<Update>,
        mut opened: mpsc::Receiver<Boxed<()>>,
        listening: oneshot::Sender<()>,
    ) {
        let over = self.over.clone();
        let own = Arc::downgrade(&self.own);
        let watching = async {
            match self.facts.revision.era() {
                Era::Stateless => Arc::clone(&self).keep_listening(listening).await,
                Era::Handshake => {
                    drop(listening);
                    tokio::join!(
                        Arc::clone(&self).keep_subscribed(),
                        self.keep_session_checked()
                    );
                }
            }
        };
        let sessions = async {
            let mut sessions = FuturesUnordered::new();
            loop {
                tokio::select! {
                    Some(session) = opened.recv() => sessions.push(session),
                    Some(()) = sessions.next() => {}
                    else => return,
                }
            }
        };
        let upkeep = async {
            tokio::join!(
                Arc::clone(&self).handle_stray_messages(own, stray),
                watching,
                sessions,
                self.evict_idle_sessions(),
                self.keep_listed()
            );
        };
        over.run_until_cancelled(Box::pin(upkeep)).await;
    }

    /// Executes a call.
    ///
    /// # Errors
    /// [`CallFailure::Unusable`] if the connection cannot be used any more; the call was not
    /// executed.
    pub(crate) async fn call(self: &Arc<Self>, call: &Call) -> Result<Raw, CallFailure> {
        let send_by = Instant::now() + self.idle_timeout(&call.method);
        let _permit = match &self.serializer {
            Some(serializer) => {
                let turn = timeout_at(send_by, serializer.acquire());
                let permit = Box::pin(turn).await;
                permit.map_err(|_elapsed| late(&call.method))?.ok()
            }
            None => None,
        };
        let session = timeout_at(send_by, self.session_for(call.peer())).await;
        let session = session.map_err(|_elapsed| late(&call.method))??;
        match self.call_in(&session, call).await {
            // The call was not executed, so it is sent once more, in a new session.
            Err(CallFailure::Unusable(error)) if self.concerns_only(&session, &error) => {
                session.set_lost();
                if error == LinkError::SessionLost {
                    self.own.rpc.doubt_session();
                }
                let renewing = self.in_time(&call.method, self.session_for(call.peer()));
                let renewed = Box::pin(renewing).await??;
                match Box::pin(self.call_in(&renewed, call)).await {
                    Err(CallFailure::Unusable(error)) if self.concerns_only(&renewed, &error) => {
                        Err(Fault::from(CallFailure::Unusable(error)).into())
                    }
                    outcome => outcome,
                }
            }
            outcome => outcome,
        }
    }

    /// Whether a failure that makes `session` unusable leaves the server's own session, and those of
    /// other callers, as they are: the server has forgotten this session, or its process has ended.
    fn concerns_only(&self, session: &Arc<Session>, error: &LinkError) -> bool {
        !Arc::ptr_eq(session, &self.own)
            && (*error == LinkError::SessionLost || session.rpc.is_over())
    }

    /// Whether its own connection has ended, or is ending.
    pub(crate) fn is_over(&self) -> bool {
        self.own.rpc.is_over()
    }

    /// Whether a request of a caller was answered on this connection.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    async fn call_in(&self, session: &Session, call: &Call) -> Result<Raw, CallFailure> {
        plexus_mcp_core::record_server_revision(session.revision);
        let outcome = match session.revision.era() {
            Era::Handshake => handshake::call(self, session, call).await,
            Era::Stateless => stateless::call(self, session, call).await,
        };
        // An error response is an answer, too.
        if matches!(
            &outcome,
            Ok(_) | Err(CallFailure::Fault(Fault::Upstream(_)))
        ) && !session.has_answered()
        {
            session.set_answered();
            self.answered.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// The resource subscriptions, if the server supports them.
    ///
    /// # Errors
    /// The server does not support subscriptions.
    pub(crate) fn subscriptions(&self) -> Result<&Arc<ResourceSubscriptions>, Fault> {
        self.offers_subscriptions()?;
        Ok(&self.subscriptions)
    }

    /// Whether it is reached by HTTP+SSE.
    pub(crate) fn is_over_sse(&self) -> bool {
        matches!(self.definition.target, Target::Sse(_)) || self.quirks.contains(&Quirk::SseOnly)
    }

    pub(crate) fn quarantined(&self) -> Vec<Quarantined> {
        lock(&self.listing).quarantined.clone()
    }

    /// Waits until [`list_problems`](Self::list_problems) may have changed.
    pub(crate) async fn list_problems_changed(&self) {
        self.list_problems_changed.notified().await;
    }

    pub(crate) fn list_problems(&self) -> Vec<ListProblem> {
        lock(&self.listing).list_problems.clone()
    }

    pub(crate) fn violations(&self) -> ProtocolViolations {
        self.own.rpc.violations()
    }

    /// Ends all sessions properly.
    pub(crate) async fn close(&self, grace: Grace) {
        self.over.cancel();
        self.tasks.set_grace(grace);
        tokio::join!(self.others.close(grace), self.own.rpc.close_within(grace));
        self.tasks.ended().await;
    }

    /// Stops listening; the connection ends with the last call that uses it.
    pub(crate) fn retire(&self) {
        self.over.cancel();
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn stop(&self) {
        self.over.cancel();
        self.others.stop();
        self.own.rpc.stop();
    }

    /// Handles messages of a session that belong to no request.
    async fn handle_stray_messages(
        self: Arc<Self>,
        session: Weak<Session>,
        mut stray: mpsc::Receiver<Update>,
    ) {
        while let Some(update) = stray.recv().await {
            let Some(session) = session.upgrade() else {
                return;
            };
            match update {
                Update::Notification(notification) => {
                    self.handle_notification(&session, &notification);
                }
                Update::Request(request) => ask::refuse_stray(&session, request).await,
            }
            if session.rpc.take_lagged() {
                self.mark_stale(&Section::ALL);
            }
        }
    }

    async fn evict_idle_sessions(&self) {
        while !self.over.is_cancelled() {
            tokio::time::sleep(SESSION_EVICTION_INTERVAL).await;
            self.others.tidy();
        }
    }

    /// Handles a notification that belongs to no call, but may belong to a session.
    fn handle_notification(&self, session: &Session, notification: &Notification) {
        if &*notification.method != method::ELICITATION_COMPLETE {
            return self.notified(notification);
        }
        let params = notification.params.as_ref();
        let object = params.and_then(|params| Object::parse(params).ok());
        let id = object.and_then(|object| object.get("elicitationId")?.decode::<String>().ok());
        if let Some(id) = id {
            session.note_visit(id);
        }
    }

    /// Handles a notification that belongs to no call.
    fn notified(&self, notification: &Notification) {
        match &*notification.method {
            method::TOOLS_CHANGED => self.mark_stale(&[Section::Tools]),
            method::PROMPTS_CHANGED => self.mark_stale(&[Section::Prompts]),
            method::RESOURCES_CHANGED => self.mark_stale(&[Section::Resources, Section::Templates]),
            method::RESOURCE_UPDATED => {
                let params = notification.params.as_ref();
                let object = params.and_then(|params| Object::parse(params).ok());
                let uri = object.and_then(|object| object.get("uri")?.decode::<String>().ok());
                if let Some(uri) = uri {
                    self.subscriptions.updated(&uri);
                }
            }
            other => tracing::debug!(method = other, "ignored an unknown notification"),
        }
    }

    /// Relays a notification of a call to its caller.
    async fn relay(&self, session: &Session, notification: Notification, events: &EventSender) {
        let params = notification.params.as_ref();
        match &*notification.method {
            method::PROGRESS => {
                if let Some(Ok(params)) = params.map(Raw::decode::<ProgressParts>) {
                    let ProgressParts {
                        progress,
                        total,
                        message,
                    } = params;
                    events
                        .progress(Progress {
                            progress,
                            total,
                            message,
                        })
                        .await;
                }
            }
            method::LOG => {
                if let Some(Ok(params)) = params.map(Raw::decode::<LoggingMessageParams>) {
                    let LoggingMessageParams {
                        level,
                        logger,
                        data,
                    } = params;
                    events
                        .log(Log {
                            level,
                            logger,
                            data,
                        })
                        .await;
                }
            }
            _ => self.handle_notification(session, &notification),
        }
    }

    /// The idle timeout of a request. Each message for it restarts the timeout.
    fn idle_timeout(&self, method: &str) -> Duration {
        let timeouts = self.definition.timeouts;
        if method == method::TOOLS_CALL {
            timeouts.call
        } else {
            timeouts.request
        }
    }

    /// The output of `work`, unless it takes longer than the timeout of the method.
    async fn in_time<T>(&self, method: &str, work: impl Future<Output = T>) -> Result<T, Fault> {
        let in_time = tokio::time::timeout(self.idle_timeout(method), work).await;
        in_time.map_err(|_elapsed| late(method))
    }

    /// The deadline for the next message of a call whose total time ends at `end`.
    fn deadline(&self, method: &str, end: Instant) -> Instant {
        (Instant::now() + self.idle_timeout(method)).min(end)
    }

    /// The error that a caller gets for a failed request.
    fn fault(failure: RpcFailure) -> Fault {
        match failure {
            RpcFailure::Error(error) => Fault::Upstream(error),
            RpcFailure::Link(LinkError::TooLarge { size, limit }) => {
                Fault::ResponseTooLarge { size, limit }
            }
            RpcFailure::Link(error) => Fault::Internal(brief(&error.to_string()).to_owned()),
        }
    }
}

/// A placeholder deadline for a timer that is disabled.
fn far_future() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

/// Whether each question comes on the stream of the call that it belongs to.
fn names_calls(definition: &Definition, quirks: &[Quirk]) -> bool {
    matches!(definition.target, Target::Http(_)) && !quirks.contains(&Quirk::SseOnly)
}

/// Identifies a caller. Calls with the same presence are of one caller; a call without presence is
/// a caller of its own.
fn caller(call: &Call) -> Caller {
    match &call.peer().presence {
        Some(presence) => presence.id(),
        None => Arc::as_ptr(call.peer()).addr(),
    }
}

/// Whether the caller can be asked anything.
fn can_be_asked(peer: &Peer) -> bool {
    let capabilities = &peer.capabilities;
    capabilities.roots || capabilities.sampling.is_some() || capabilities.elicitation.is_some()
}

/// The error for a server that loses a new session at once.
pub(crate) fn session_lost_fault() -> Fault {
    Fault::Internal("the server loses each new session at once".to_owned())
}

fn late(method: &str) -> Fault {
    Fault::Internal(format!(
        "{method} was not answered in time; it was cancelled"
    ))
}

/// Closes a connection when it is dropped, unless it was defused.
struct StopOnDrop(Option<Arc<ConnectedServer>>);

impl StopOnDrop {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(server) = &self.0 {
            server.stop();
        }
    }
}

/// A progress notification without its token.
#[derive(serde::Deserialize)]
struct ProgressParts {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}
