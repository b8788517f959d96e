//! The supervisor task of a server: connects, keeps the connection, and reconnects.

use std::sync::Arc;

use std::pin::pin;
use std::time::Duration;

use futures_util::future::OptionFuture;
use plexus_mcp_core::Boxed;
use plexus_mcp_protocol::Era;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::lifecycle::{Action, CRASH_LOOP_STARTS, CRASH_WINDOW, Idle, Input, Lifecycle, Phase};
use super::shared::{Connecting, Shared, nothing};
use super::sign_in::SignIn;
use crate::backoff;
use crate::child::Grace;
use crate::connect::{self, ConnectError};
use crate::connected_server::ConnectedServer;
use crate::definition::{Definition, Target};
use crate::error_text::brief;
use crate::link::LinkError;
use crate::rpc::Ending;
use crate::status::ServerState;

/// How long a program that starts counts against the limit of programs that start at once.
const START_SLOT_MAX: Duration = Duration::from_secs(10);

/// A request to the supervisor.
pub(super) enum SupervisorRequest {
    /// Connect in the background.
    Start,
    /// A call needs the server.
    Call(Reply),
    /// A person wants it connected.
    Connect(Reply),
    /// Disconnect it, and empty the catalogue.
    Disconnect {
        grace: Grace,
        done: oneshot::Sender<()>,
    },
    /// A person wants it disconnected and connected again; the catalogue is kept.
    Reconnect(Reply),
    /// A call found that `server` cannot be used any more, and why, and needs another.
    Replace {
        server: Arc<ConnectedServer>,
        error: LinkError,
        reply: Reply,
    },
}

/// Where the outcome of an attempt goes.
pub(super) type Reply = oneshot::Sender<Result<Arc<ConnectedServer>, ConnectError>>;

/// A connected server, and the future that keeps its lists and subscriptions current.
pub(super) struct Connection {
    server: Arc<ConnectedServer>,
    /// Keeps its lists and subscriptions as they should be, while it is polled.
    upkeep: Boxed<()>,
    ending: Ending,
    started: Option<Instant>,
}

/// How an attempt ended; with a failure, when the process started, if one did or should have.
type Attempted = Result<Connection, (ConnectError, Option<Instant>)>;

/// The task of one upstream server.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    lifecycle: Lifecycle,
    attempt: Option<Boxed<Attempted>>,
    connection: Option<Connection>,
    /// Calls and people that wait for the attempt.
    waiting: Vec<Reply>,
    /// Why there is no connection.
    reason: Option<String>,
    /// How long the process may take to end.
    grace: Grace,
}

impl Supervisor {
    pub(super) fn new(shared: Arc<Shared>, auto_restart: bool) -> Self {
        Self {
            shared,
            lifecycle: Lifecycle::new(auto_restart),
            attempt: None,
            connection: None,
            waiting: Vec::new(),
            reason: None,
            grace: Grace::default(),
        }
    }

    /// Runs until nothing refers to the upstream any more, and then ends the connection.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<SupervisorRequest>) {
        loop {
            let deadline = self.lifecycle.deadline().map(sleep_until);
            let connection = self.connection.as_mut();
            let (upkeep, ending) = connection
                .map(|connection| (&mut connection.upkeep, &connection.ending))
                .unzip();
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.requested(request).await,
                    None => break,
                },
                Some(attempted) = OptionFuture::from(self.attempt.as_mut()) => {
                    self.attempted(attempted);
                }
                Some(error) = OptionFuture::from(ending.map(Ending::wait)) => {
                    self.ended(&error).await;
                }
                // Ends only with the connection, which the branch above notices.
                Some(()) = OptionFuture::from(upkeep) => {
                    if let Some(connection) = &mut self.connection {
                        connection.upkeep = Box::pin(std::future::pending());
                    }
                }
                Some(()) = OptionFuture::from(deadline) => {
                    self.handle(Input::DeadlinePassed).await;
                }
            }
        }
        self.attempt = None;
        self.disconnect().await;
    }

    async fn requested(&mut self, request: SupervisorRequest) {
        match request {
            SupervisorRequest::Start => self.handle(Input::Start).await,
            SupervisorRequest::Call(reply) => {
                self.handle(Input::Call).await;
                self.answer(reply);
            }
            SupervisorRequest::Connect(reply) => {
                self.handle(Input::Connect).await;
                self.answer(reply);
            }
            SupervisorRequest::Disconnect { grace, done } => {
                self.reason = None;
                self.grace = grace;
                self.handle(Input::Disconnect).await;
                self.grace = Grace::default();
                // Set the status first: the hub caches the catalogue of a connected server, and must not
                // cache the empty one.
                let reason = Some("disconnected".to_owned());
                self.shared.set_status(ServerState::Pending, reason);
                self.shared.offer_nothing();
                // Nothing need wait for it.
                done.send(()).unwrap_or(());
            }
            SupervisorRequest::Reconnect(reply) => {
                // Calls that wait for an attempt wait for this one.
                let waiting = std::mem::take(&mut self.waiting);
                self.handle(Input::Disconnect).await;
                self.handle(Input::Connect).await;
                self.waiting.extend(waiting);
                self.answer(reply);
            }
            SupervisorRequest::Replace {
                server,
                error,
                reply,
            } => {
                // Another call may have found out before.
                let current = self.connection.as_ref();
                if current.is_some_and(|current| Arc::ptr_eq(&current.server, &server)) {
                    self.ended(&error).await;
                }
                self.handle(Input::Call).await;
                self.answer(reply);
            }
        }
    }

    /// Gives a caller the connection, lets it wait for the attempt, or says why there is neither.
    fn answer(&mut self, reply: Reply) {
        if let Some(connection) = &self.connection {
            drop(reply.send(Ok(Arc::clone(&connection.server))));
        } else if self.attempt.is_some() {
            self.waiting.retain(|waiting| !waiting.is_closed());
            self.waiting.push(reply);
        } else {
            drop(reply.send(Err(ConnectError::NotStarted(self.refusal()))));
        }
    }

    async fn handle(&mut self, input: Input) {
        match self.transition(input) {
            Action::Nothing => {}
            Action::Connect => self.connect(),
            Action::Disconnect => {
                self.attempt = None;
                self.disconnect().await;
            }
        }
    }

    fn transition(&mut self, input: Input) -> Action {
        self.lifecycle
            .handle(Instant::now(), backoff::random(), input)
    }

    fn connect(&mut self) {
        self.shared.set_status(ServerState::Pending, None);
        let attempt = attempt(Arc::clone(&self.shared));
        self.attempt = Some(Box::pin(attempt));
    }

    async fn disconnect(&mut self) {
        self.shared.set_live(None);
        let disconnected = || ConnectError::NotStarted("it was disconnected".to_owned());
        self.answer_waiting(&Err(disconnected()));
        if let Some(connection) = self.connection.take() {
            connection.server.close(self.grace).await;
        }
    }

    fn attempted(&mut self, attempted: Attempted) {
        self.attempt = None;
        match attempted {
            Ok(connection) => {
                let server = Arc::clone(&connection.server);
                let started = connection.started;
                self.connection = Some(connection);
                self.reason = None;
                self.transition(Input::Connected { started });
                self.shared.connected(&server);
                self.answer_waiting(&Ok(server));
            }
            Err((error, started)) => {
                let needs_auth = error.needs_auth();
                self.transition(Input::Failed {
                    needs_auth,
                    started,
                });
                self.publish_failure(error.to_string(), needs_auth);
                self.answer_waiting(&Err(error));
            }
        }
    }

    /// Handles a connection that was lost or is unusable. Calls that still use it are not cancelled;
    /// each of them gets its own error or answer.
    async fn ended(&mut self, error: &LinkError) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        self.shared.set_live(None);
        connection.server.retire();
        let answered = connection.server.has_answered();
        if *error == LinkError::SessionLost {
            self.handle(Input::SessionLost { answered }).await;
            if self.attempt.is_none() {
                self.publish_failure(error.to_string(), false);
            }
        } else {
            self.transition(Input::Lost { answered });
            self.publish_failure(error.to_string(), false);
        }
    }

    /// Publishes the status of a server without a connection, with the reason and the next step.
    fn publish_failure(&mut self, reason: String, needs_auth: bool) {
        let state = if needs_auth {
            ServerState::NeedsAuth
        } else {
            ServerState::Failed
        };
        let shown = match self.lifecycle.phase() {
            Phase::Idle(Idle::Failed) => format!("{}: {reason}", self.not_restarted()),
            Phase::Backoff { .. } if self.lifecycle.is_crash_looping() => {
                format!("{}: {reason}", crash_looping())
            }
            _ => reason.clone(),
        };
        self.reason = Some(reason);
        if !self.shared.is_known() {
            self.offer_sign_in(needs_auth);
        }
        self.shared.set_status(state, Some(shown));
    }

    /// While nothing else is known of a server that wants its user to sign in, it offers that.
    fn offer_sign_in(&self, needs_auth: bool) {
        let definition = self.shared.definition();
        let authorizer = definition.as_ref().and_then(|known| known.authorizer());
        let invites = needs_auth && authorizer.is_some_and(|authorizer| authorizer.can_invite());
        let offer = if invites { SignIn::catalogue() } else { None };
        self.shared
            .replace_catalogue(offer.unwrap_or_else(|| Arc::new(nothing())));
    }

    fn answer_waiting(&mut self, outcome: &Result<Arc<ConnectedServer>, ConnectError>) {
        for waiting in self.waiting.drain(..) {
            drop(waiting.send(outcome.clone()));
        }
    }

    /// Why a call is refused at once.
    fn refusal(&self) -> String {
        let reason = self.reason.as_deref().map_or("it is not connected", brief);
        match self.lifecycle.phase() {
            Phase::Idle(Idle::Disconnected) => {
                format!("it was disconnected{}", self.shared.reconnect_hint())
            }
            Phase::Idle(Idle::Failed) => format!("{}: {reason}", self.not_restarted()),
            Phase::Backoff { .. } if self.lifecycle.is_crash_looping() => {
                format!(
                    "{}{}{}: {reason}",
                    crash_looping(),
                    self.until_next_start(),
                    self.shared.reconnect_hint()
                )
            }
            _ => reason.to_owned(),
        }
    }

    fn not_restarted(&self) -> String {
        let reconnect_hint = self.shared.reconnect_hint();
        format!("it stays down, as auto_restart is false{reconnect_hint}")
    }

    /// The time until the next start, for an error that is sent at once.
    fn until_next_start(&self) -> String {
        match self.lifecycle.deadline() {
            Some(deadline) => {
                let seconds = deadline.duration_since(Instant::now()).as_secs();
                format!(", so the next is in {seconds} s")
            }
            None => String::new(),
        }
    }
}

fn crash_looping() -> String {
    let window = CRASH_WINDOW.as_secs();
    format!("its last {CRASH_LOOP_STARTS} starts ended within {window} s each")
}

/// Prepares, starts, greets and lists the server once.
async fn attempt(shared: Arc<Shared>) -> Attempted {
    shared.set_started(true);
    let definition = match (shared.prepare)().await {
        Ok(definition) => Arc::new(definition),
        Err(reason) => return Err((ConnectError::Prepare(reason), None)),
    };
    shared.set_definition(Arc::clone(&definition));
    let is_program = matches!(definition.target, Target::Stdio(_));
    let slot = if is_program {
        let ending = || ConnectError::NotStarted("Plexus is ending".to_owned());
        shared.set_started(false);
        let slot = shared.slots.take().await;
        shared.set_started(true);
        Some(slot.ok_or_else(|| (ending(), None))?)
    } else {
        None
    };
    let began = Instant::now();
    let started = is_program.then_some(began);
    let greeted = holding(slot, greet(&shared, &definition)).await;
    let connected = greeted.map_err(|error| (error, started))?;
    let ending = connected.rpc.ending();
    let (server, upkeep) = ConnectedServer::settle(
        definition,
        connected,
        shared.catalogue.clone(),
        shared.is_known(),
        Arc::clone(&shared.subscriptions),
        shared.tasks.clone(),
    )
    .await;
    shared.note_connected_in(began.elapsed());
    Ok(Connection {
        server,
        upkeep,
        ending,
        started,
    })
}

/// Does `work` while holding a start slot. The slot is released when `work` is done, or after
/// [`START_SLOT_MAX`]: a start that takes longer is waiting for I/O and not for a processor.
async fn holding<T>(slot: Option<OwnedSemaphorePermit>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    match timeout(START_SLOT_MAX, &mut work).await {
        Ok(done) => done,
        Err(_elapsed) => {
            drop(slot);
            work.await
        }
    }
}

/// Does the handshake in the era of the last connection; if that fails, detects the era again.
async fn greet(
    shared: &Shared,
    definition: &Arc<Definition>,
) -> Result<connect::Connected, ConnectError> {
    let Connecting { tasks, era } = shared.connecting();
    let known: Option<Era> = definition.era.or(era);
    let assumed = definition.era.is_none() && known.is_some();
    let mut first = Definition::clone(definition);
    first.era = known;
    let mut greeted = connect::connect(&Arc::new(first), &tasks).await;
    if assumed && let Err(error) = &greeted {
        // The next attempt finds out anew.
        shared.forget_era();
        if error.may_be_wrong_era() && !matches!(error, ConnectError::Timeout { .. }) {
            greeted = connect::connect(definition, &tasks).await;
        }
    }
    if let Ok(connected) = &greeted {
        shared.note_era(connected.facts.revision.era());
    }
    greeted
}
