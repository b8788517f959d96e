//! One upstream server as a [`Service`], with a supervisor task that connects and reconnects it.

mod lifecycle;
mod shared;
mod sign_in;
mod slots;
mod supervisor;

use std::sync::{Arc, Mutex, Weak};

use plexus_mcp_core::{
    Boxed, Call, CallSpan, Catalogue, EventSender, Outcome, Peer, Service, Updates,
};
use plexus_mcp_protocol::messages::CallToolResult;
use plexus_mcp_protocol::{Era, Fault, method};
use plexus_mcp_wire::Raw;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::auth::AuthError;
use crate::child::Grace;
use crate::connect::{ConnectError, Quirk};
use crate::connected_server::{CallFailure, ConnectedServer};
use crate::definition::{Affinity, Definition, Timeouts};
use crate::listing::{ListProblem, Quarantined};
use crate::lock::lock;
use crate::rpc::ProtocolViolations;
use crate::server_facts::ServerFacts;
use crate::status::{ProcessInfo, ServerState, Status};
use shared::Shared;
use sign_in::SignIn;
pub use slots::StartSlots;
pub(crate) use supervisor::holding;
use supervisor::{Supervisor, SupervisorRequest};

/// How often the caller of one call may be asked to sign in (AUTH26-18).
const MAX_SIGN_IN_INVITATIONS_PER_CALL: u32 = 2;
/// How many requests may wait for the supervisor; a further one waits for room.
const MAX_QUEUED_SUPERVISOR_REQUESTS: usize = 256;

/// One MCP server, of any revision and behind any transport, as a [`Service`]. Cheap to clone:
/// clones share one connection.
///
/// It is connected when it is started or first called, and reconnected with exponential backoff when
/// it is lost; a call that needs it makes an attempt at once, and waits for it. A request is sent
/// again only if the server refused to execute it, or if nothing of it was sent.
///
/// Dropping the last clone ends the connection, and with it the server's process.
#[derive(Clone)]
pub struct Upstream {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    requests: mpsc::Sender<SupervisorRequest>,
    /// Until the first request, which starts the supervisor's task.
    supervisor: Mutex<Option<(Supervisor, mpsc::Receiver<SupervisorRequest>)>>,
}

/// Makes the definition of a server, for each connection attempt. The error is the reason, for users.
pub type Prepare = Arc<dyn Fn() -> Boxed<Result<Definition, String>> + Send + Sync>;

/// How the supervisor of an upstream server works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Supervision {
    /// Its name, for texts that people read.
    pub name: Option<Arc<str>>,
    /// Whether it is reconnected after it failed or was lost (C35).
    pub auto_restart: bool,
    /// Its catalogue and revision from an earlier connection, if they are cached.
    pub known: Option<(Arc<Catalogue>, Option<String>)>,
    /// How many programs may start at once; shared with other upstream servers.
    pub slots: StartSlots,
}

impl Supervision {
    /// Supervision without automatic reconnects.
    pub fn once() -> Self {
        Self {
            auto_restart: false,
            ..Self::default()
        }
    }
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            name: None,
            auto_restart: true,
            known: None,
            slots: StartSlots::default(),
        }
    }
}

/// Diagnostics of a connected server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Its description of itself, from the handshake.
    pub facts: ServerFacts,
    /// Deviations from the specification during the handshake.
    pub quirks: Vec<Quirk>,
    /// Entries of its lists that are invalid and left out of the catalogue.
    pub quarantined: Vec<Quarantined>,
    /// Problems of its lists as a whole.
    pub list_problems: Vec<ListProblem>,
    /// Counts of its protocol violations.
    pub violations: ProtocolViolations,
}

pub use shared::History;

impl Upstream {
    /// A server that is not connected yet, with the default [`Supervision`].
    pub fn new(definition: Definition) -> Self {
        Self::supervised(definition, Supervision::default())
    }

    /// A server that is not connected yet.
    pub fn supervised(definition: Definition, supervision: Supervision) -> Self {
        let definition = Arc::new(definition);
        let prepare: Prepare = {
            let definition = Arc::clone(&definition);
            Arc::new(move || {
                let definition = Definition::clone(&definition);
                Box::pin(std::future::ready(Ok(definition)))
            })
        };
        let upstream = Self::deferred(prepare, supervision);
        upstream.handle.shared.set_definition(definition);
        upstream
    }

    /// A server whose definition takes time to make, as secrets must be fetched for it. It is made
    /// anew for every attempt to connect.
    pub fn deferred(prepare: Prepare, supervision: Supervision) -> Self {
        let auto_restart = supervision.auto_restart;
        let shared = Arc::new(Shared::new(prepare, supervision));
        let supervisor = Supervisor::new(Arc::clone(&shared), auto_restart);
        let (requests, requested) = mpsc::channel(MAX_QUEUED_SUPERVISOR_REQUESTS);
        Self {
            handle: Arc::new(Handle {
                shared,
                requests,
                supervisor: Mutex::new(Some((supervisor, requested))),
            }),
        }
    }

    /// Begins to connect in the background, unless that was begun before.
    pub fn start(&self) {
        self.run_supervisor();
        // If there is no room, many calls wait already, and each of them connects.
        drop(self.handle.requests.try_send(SupervisorRequest::Start));
    }

    /// Connects, unless it is connected. When this returns, the handshake is done and the lists were
    /// read, or the server's status has the error.
    ///
    /// Dropping the future leaves the attempt to the supervisor.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(&self) -> Result<(), ConnectError> {
        self.ask(SupervisorRequest::Connect).await.map(drop)
    }

    /// Closes the connection, if there is one. The catalogue becomes empty, and the server is not
    /// connected again before [`connect`](Self::connect) or [`reconnect`](Self::reconnect) is called.
    /// Dropping the future does not stop the supervisor from disconnecting.
    pub async fn disconnect(&self) {
        self.disconnect_within(Grace::default()).await;
    }

    /// The same, with a limit for how long the server's process may take to exit.
    pub async fn disconnect_within(&self, grace: Grace) {
        let (done, waiting) = oneshot::channel();
        self.send(SupervisorRequest::Disconnect { grace, done })
            .await;
        waiting.await.unwrap_or(());
    }

    /// Closes the connection and opens a new one. The catalogue is kept in the meantime.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn reconnect(&self) -> Result<(), ConnectError> {
        self.ask(SupervisorRequest::Reconnect).await.map(drop)
    }

    /// Connects, unless it is connected. If the server requires a sign-in, the caller is asked for it.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect_for(&self, events: &EventSender) -> Result<(), ConnectError> {
        match self.connect().await {
            Err(error) if error.wants_user() => match self.ask_to_sign_in(events).await {
                Ok(true) => self.connect().await,
                Ok(false) => Err(error),
                Err(error) => Err(ConnectError::SignIn(error)),
            },
            connected => connected,
        }
    }

    /// Waits until the server is connected, like a call does.
    ///
    /// # Errors
    /// It cannot be connected, or not within the timeout of a call.
    pub async fn ready(&self) -> Result<(), ConnectError> {
        if self.is_connected() {
            return Ok(());
        }
        Box::pin(self.awaited(SupervisorRequest::Call))
            .await
            .map(drop)
    }

    /// Whether the server is told the capabilities of each caller, so that it may list other tools
    /// for other callers: it is stateless, or callers with other capabilities have sessions of their
    /// own. `false` while there is no connection.
    pub fn lists_by_capabilities(&self) -> bool {
        self.handle.shared.server().is_some_and(|server| {
            server.facts.revision.era() == Era::Stateless
                || server.definition.affinity == Affinity::Principal
        })
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        self.handle.shared.server().is_some()
    }

    /// How the server is doing, now and after every change.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.handle.shared.status.subscribe()
    }

    /// Whether the catalogue is known, from this connection or an earlier one.
    pub fn is_known(&self) -> bool {
        self.handle.shared.is_known()
    }

    /// When the last attempt to connect it began, and all changes. `None` before the first attempt,
    /// and while one waits for other programs to start.
    pub fn started_at(&self) -> watch::Receiver<Option<Instant>> {
        self.handle.shared.started_at()
    }

    /// Whether the last attempt to connect failed.
    pub fn is_failing(&self) -> bool {
        self.handle.shared.is_failing()
    }

    /// When the next attempt to connect it begins, while it is in backoff. A call makes one at once.
    pub fn next_attempt(&self) -> Option<Instant> {
        self.handle.shared.next_attempt()
    }

    /// Diagnostics of the server, if it is connected.
    pub fn report(&self) -> Option<Report> {
        let server = self.handle.shared.server()?;
        Some(Report {
            facts: server.facts.clone(),
            quirks: server.quirks.clone(),
            quarantined: server.quarantined(),
            list_problems: server.list_problems(),
            violations: server.violations(),
        })
    }

    /// Facts about the server that outlive its connections.
    pub fn history(&self) -> History {
        self.handle.shared.history()
    }

    /// The server's process, if it is one of ours and runs.
    pub async fn process(&self) -> Option<ProcessInfo> {
        let server = self.handle.shared.server()?;
        server.own.rpc.link().process().await
    }

    /// Starts the supervisor's task, unless it runs.
    fn run_supervisor(&self) {
        let supervisor = lock(&self.handle.supervisor).take();
        if let Some((supervisor, requests)) = supervisor {
            let tasks = &self.handle.shared.tasks;
            tasks.spawn(supervisor.run(requests));
        }
    }

    async fn send(&self, request: SupervisorRequest) {
        self.run_supervisor();
        // The supervisor ends with the last handle, so it takes this; or the runtime is ending.
        drop(self.handle.requests.send(request).await);
    }

    async fn ask(
        &self,
        request: impl FnOnce(supervisor::Reply) -> SupervisorRequest,
    ) -> Result<Arc<ConnectedServer>, ConnectError> {
        let (reply, outcome) = oneshot::channel();
        self.send(request(reply)).await;
        let ended = || Err(ConnectError::NotStarted("the program is ending".to_owned()));
        outcome.await.unwrap_or_else(|_gone| ended())
    }

    /// The connection. If there is none, requests one and waits for it, unless the lifecycle
    /// refuses calls.
    async fn server(&self) -> Result<Arc<ConnectedServer>, CallFailure> {
        match self.handle.shared.server() {
            Some(server) => Ok(server),
            None => self
                .awaited(SupervisorRequest::Call)
                .await
                .map_err(|error| self.not_connected(error)),
        }
    }

    /// Sends `request` to the supervisor and waits for its answer, up to the timeout of a call.
    async fn awaited(
        &self,
        request: impl FnOnce(supervisor::Reply) -> SupervisorRequest,
    ) -> Result<Arc<ConnectedServer>, ConnectError> {
        let timeout = self.timeouts().call;
        let connected = tokio::time::timeout(timeout, self.ask(request)).await;
        let late = || ConnectError::NotStarted(format!("not within {} s", timeout.as_secs()));
        connected.unwrap_or_else(|_elapsed| Err(late()))
    }

    fn not_connected(&self, error: ConnectError) -> CallFailure {
        match CallFailure::from(error) {
            CallFailure::Fault(Fault::Internal(reason)) => {
                let name = self.handle.shared.display_name();
                Fault::Internal(format!("{name} cannot be connected: {reason}")).into()
            }
            other => other,
        }
    }

    fn timeouts(&self) -> Timeouts {
        let definition = self.handle.shared.definition();
        definition.map_or_else(Timeouts::default, |definition| definition.timeouts)
    }

    /// Carries out a call. If the connection is unusable and the server has executed nothing, the call
    /// is made once more on a new connection.
    async fn attempt(&self, call: &Call) -> Result<Raw, CallFailure> {
        let server = self.server().await?;
        match server.call(call).await {
            Err(CallFailure::Unusable(error)) => {
                let replace = |reply| SupervisorRequest::Replace {
                    server,
                    error,
                    reply,
                };
                let renewed = Box::pin(self.awaited(replace)).await;
                let renewed = renewed.map_err(|error| self.not_connected(error))?;
                Box::pin(renewed.call(call)).await
            }
            outcome => outcome,
        }
    }

    /// The same fault, with the server's name in it unless it has it already.
    fn with_server_name(&self, fault: Fault) -> Fault {
        let name = self.handle.shared.display_name();
        match fault {
            Fault::Internal(text) if self.handle.shared.has_name() && !text.starts_with(&name) => {
                Fault::Internal(format!("{name}: {text}"))
            }
            other => other,
        }
    }

    /// Invites the caller to sign in: for its own credentials if it has them and the server is
    /// connected, else for those of the shared connection.
    async fn ask_to_sign_in(&self, events: &EventSender) -> Result<bool, AuthError> {
        let Some(definition) = self.handle.shared.definition() else {
            return Ok(false);
        };
        let own = match self.handle.shared.server() {
            Some(_) => definition.identity(events.peer())?,
            None => None,
        };
        let own = own.map(|identity| identity.authorizer);
        match own.as_ref().or(definition.authorizer()) {
            Some(authorizer) => authorizer.invite(events).await,
            None => Ok(false),
        }
    }

    /// Whether the caller's calls have credentials of their own, so that their refusal does not
    /// affect the shared connection.
    fn has_own_identity(&self, peer: &Peer) -> bool {
        let definition = self.handle.shared.definition();
        definition.is_some_and(|definition| !matches!(definition.identity(peer), Ok(None)))
    }

    async fn carry_out(&self, call: &Call) -> Outcome {
        let mut invitations = 0;
        loop {
            let (reason, wants_user) = match self.attempt(call).await {
                Ok(result) => {
                    self.clear_needs_auth(call.peer());
                    return Ok(result);
                }
                Err(CallFailure::NeedsAuth { reason, wants_user }) => (reason, wants_user),
                Err(failure) => return Err(self.with_server_name(failure.into())),
            };
            let may_ask = invitations < MAX_SIGN_IN_INVITATIONS_PER_CALL
                && method::allows_input_required(&call.method);
            let invited = if wants_user && may_ask {
                Box::pin(self.ask_to_sign_in(&call.events)).await
            } else {
                Ok(false)
            };
            if matches!(invited, Ok(true)) {
                invitations += 1;
                continue;
            }
            if !self.has_own_identity(call.peer()) {
                let shared = &self.handle.shared;
                shared.set_status(ServerState::NeedsAuth, Some(reason.clone()));
            }
            return match invited {
                Err(error) if &*call.method == method::TOOLS_CALL => {
                    Ok(CallToolResult::error(error.to_string()).to_raw())
                }
                Err(error) => Err(Fault::Internal(error.to_string())),
                Ok(_) => Err(Fault::Internal(reason)),
            };
        }
    }

    /// A call was authorized, so the status `NeedsAuth` is cleared.
    fn clear_needs_auth(&self, peer: &Peer) {
        let shared = &self.handle.shared;
        let wanting = shared.status.borrow().state == ServerState::NeedsAuth;
        // The call may have used a connection that was replaced meanwhile.
        if let Some(server) = shared.server()
            && wanting
            && !self.has_own_identity(peer)
        {
            shared.publish_connected(&server);
        }
    }

    /// The tool to sign in with, if this call is of it.
    fn sign_in(&self, call: &Call) -> Option<SignIn> {
        let is_it = !self.is_known() && sign_in::is_call(call);
        let handle: Weak<Handle> = Arc::downgrade(&self.handle);
        is_it.then(|| SignIn::of(handle))?
    }
}

impl Service for Upstream {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.handle.shared.catalogue.subscribe()
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        if let Some(sign_in) = self.sign_in(&call) {
            return sign_in.call(call);
        }
        let upstream = self.clone();
        let span = CallSpan::of_server(&call, self.handle.shared.name());
        span.run(call, |call| {
            Box::pin(async move { upstream.carry_out(&call).await })
        })
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let upstream = self.clone();
        let (peer, uri) = (Arc::clone(peer), uri.to_owned());
        Box::pin(async move {
            // Subscriptions use the server's own connection, so its credentials and not the caller's.
            if upstream.has_own_identity(&peer) {
                let method = method::RESOURCES_SUBSCRIBE.to_owned();
                return Err(Fault::MethodNotFound(method));
            }
            let server = upstream.server().await?;
            let timeout = upstream.timeouts().request;
            server.subscriptions()?.watch(&uri, timeout).await
        })
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shared = &self.handle.shared;
        let definition = shared.definition();
        f.debug_struct("Upstream")
            .field(
                "target",
                &definition.map(|definition| definition.target.clone()),
            )
            .field("status", &*shared.status.borrow())
            .finish_non_exhaustive()
    }
}
