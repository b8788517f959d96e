//! The supervisor task of a server: connects, keeps the connection, and reconnects.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use plexus_mcp_core::Boxed;
use plexus_mcp_protocol::Era;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::lifecycle::{Action, CRASH_LOOP_STARTS, CRASH_WINDOW, Idle, Input, Lifecycle, Phase};
use super::shared::{Shared, nothing};
use super::sign_in::SignIn;
use crate::backoff;
use crate::child::Grace;
use crate::connect::{self, ConnectError, Starts};
use crate::connected_server::ConnectedServer;
use crate::definition::{Definition, Target};
use crate::error_text::{brief, with_remark};
use crate::link::LinkError;
use crate::rpc::{ConnectionTasks, Ending};
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

/// How an attempt ended.
type Attempted = Result<Connection, AttemptFailure>;

/// Why an attempt failed.
struct AttemptFailure {
    error: ConnectError,
    /// How long the last process of the attempt ran, if it ended by itself.
    crashed_after: Option<Duration>,
}

impl From<ConnectError> for AttemptFailure {
    fn from(error: ConnectError) -> Self {
        Self {
            error,
            crashed_after: None,
        }
    }
}

impl AttemptFailure {
    /// The failure of an attempt whose last process has just ended, if `error` says so.
    fn after(error: ConnectError, starts: &Starts) -> Self {
        let has_ended = matches!(error, ConnectError::Link(LinkError::Closed(_)));
        Self {
            error,
            crashed_after: starts
                .last()
                .filter(|_| has_ended)
                .map(|start| start.elapsed()),
        }
    }
}

/// An attempt to connect.
struct Attempt {
    work: Boxed<Attempted>,
    tasks: ConnectionTasks,
}

impl Attempt {
    /// Abandons the attempt, and waits until its processes have ended.
    async fn abandon(self, grace: Grace) {
        self.tasks.set_grace(grace);
        drop(self.work);
        self.tasks.ended().await;
    }
}

/// The task of one upstream server.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    lifecycle: Lifecycle,
    attempt: Option<Attempt>,
    connection: Option<Connection>,
    /// The end of the connection before, whose process may still be exiting.
    previous: Option<Ending>,
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
            previous: None,
            waiting: Vec::new(),
            reason: None,
            grace: Grace::default(),
        }
    }

    /// Runs until nothing refers to the upstream any more, and then ends the connection.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<SupervisorRequest>) {
        loop {
            let deadline = self.lifecycle.deadline().map(sleep_until);
            let (mut upkeep, mut ending, mut lists) = (None, None, None);
            if let Some(connection) = &mut self.connection {
                upkeep = Some(&mut connection.upkeep);
                ending = Some(&connection.ending);
                lists = Some(&connection.server);
            }
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.requested(request).await,
                    None => break,
                },
                Some(attempted) = OptionFuture::from(self.attempt.as_mut().map(|attempt| &mut attempt.work)) => {
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
                Some(()) = OptionFuture::from(lists.map(|server| server.list_problems_changed())) => {
                    if let Some(connection) = &self.connection {
                        self.shared.publish_connected(&connection.server);
                    }
                }
                Some(()) = OptionFuture::from(deadline) => {
                    self.handle(Input::DeadlinePassed).await;
                }
            }
        }
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
                self.shared.set_known();
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

    /// Gives a caller the connection, lets it wait for the attempt, or returns the error of the last one.
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
            Action::Disconnect => self.disconnect().await,
        }
    }

    fn transition(&mut self, input: Input) -> Action {
        let action = self
            .lifecycle
            .handle(Instant::now(), backoff::random(), input);
        self.shared.set_next_attempt(self.lifecycle.deadline());
        action
    }

    fn connect(&mut self) {
        self.shared.set_status(ServerState::Pending, None);
        let tasks = ConnectionTasks::default();
        let (shared, previous) = (Arc::clone(&self.shared), self.previous.take());
        let attempting = attempt(shared, tasks.clone());
        let work = Box::pin(async move {
            // Two processes of one server may fight for a port or a lock.
            if let Some(previous) = previous {
                previous.wait().await;
            }
            attempting.await
        });
        self.attempt = Some(Attempt { work, tasks });
    }

    /// Abandons the attempt, or closes the connection.
    async fn disconnect(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.abandon(self.grace).await;
        }
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
            Err(AttemptFailure {
                error,
                crashed_after,
            }) => {
                let needs_auth = error.needs_auth();
                self.transition(Input::Failed {
                    needs_auth,
                    crashed_after,
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
        if connection.server.is_over() {
            self.previous = Some(connection.ending);
        }
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
            Phase::Idle(Idle::Failed) => self.not_restarted(&reason),
            Phase::Backoff { .. } if self.lifecycle.is_crash_looping() => {
                with_remark(&reason, &crash_looping())
            }
            _ => reason.clone(),
        };
        self.reason = Some(reason);
        if !self.shared.is_known() {
            self.offer_sign_in(needs_auth);
        }
        self.shared.set_status(state, Some(shown));
    }

    /// Offers a sign-in tool for a server that requires a sign-in and whose catalogue is unknown.
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

    /// The error of a call that is refused at once.
    fn refusal(&self) -> String {
        let reason = self.reason.as_deref().map_or("it is not connected", brief);
        match self.lifecycle.phase() {
            Phase::Idle(Idle::Disconnected) => {
                format!("it was disconnected{}", self.shared.reconnect_hint())
            }
            Phase::Idle(Idle::Failed) => self.not_restarted(reason),
            Phase::Backoff { .. } if self.lifecycle.is_crash_looping() => {
                let next_start = self.until_next_start();
                let hint = self.shared.reconnect_hint();
                let remark = format!("{}{next_start}{hint}", crash_looping());
                with_remark(reason, &remark)
            }
            _ => reason.to_owned(),
        }
    }

    /// `reason`, and that the server is not restarted. Only servers with a name have that setting.
    fn not_restarted(&self, reason: &str) -> String {
        if self.shared.has_name() {
            let hint = self.shared.reconnect_hint();
            let remark = format!("it is not restarted, because auto_restart is false{hint}");
            with_remark(reason, &remark)
        } else {
            reason.to_owned()
        }
    }

    /// The time until the next start attempt, to append to the error of a call that fails
    /// immediately.
    fn until_next_start(&self) -> String {
        match self.lifecycle.deadline() {
            Some(deadline) => {
                let seconds = deadline.duration_since(Instant::now()).as_secs();
                format!("; the next start is in {seconds} s")
            }
            None => String::new(),
        }
    }
}

fn crash_looping() -> String {
    let window = CRASH_WINDOW.as_secs();
    format!("its last {CRASH_LOOP_STARTS} starts ended within {window} s each")
}

/// Prepares and starts the server, does the handshake and reads the lists, once.
async fn attempt(shared: Arc<Shared>, tasks: ConnectionTasks) -> Attempted {
    if shared.slots.is_closed() {
        return Err(ConnectError::shutting_down().into());
    }
    shared.set_started_at(Some(Instant::now()));
    let definition = match (shared.prepare)().await {
        Ok(definition) => Arc::new(definition),
        Err(reason) => return Err(ConnectError::Prepare(reason).into()),
    };
    shared.set_definition(Arc::clone(&definition));
    let is_program = matches!(definition.target, Target::Stdio(_));
    let slot = if is_program {
        shared.set_started_at(None);
        let slot = shared.slots.take().await;
        shared.set_started_at(Some(Instant::now()));
        Some(slot.ok_or_else(ConnectError::shutting_down)?)
    } else {
        None
    };
    let began = Instant::now();
    let starts = Starts::default();
    let outcome = holding(slot, handshake(&shared, &definition, &tasks, &starts)).await;
    let connected = outcome.map_err(|error| AttemptFailure::after(error, &starts))?;
    let ending = connected.rpc.ending();
    let settled = ConnectedServer::settle(
        definition,
        connected,
        shared.catalogue.clone(),
        shared.is_known(),
        Arc::clone(&shared.subscriptions),
        tasks,
        shared.slots.clone(),
    )
    .await;
    let (server, upkeep) = settled.map_err(|error| AttemptFailure::after(error.into(), &starts))?;
    shared.note_connected_in(began.elapsed());
    Ok(Connection {
        server,
        upkeep,
        ending,
        started: starts.last(),
    })
}

/// Does `work` while holding a start slot. The slot is released when `work` is done, or after
/// [`START_SLOT_MAX`]: a start that takes longer is waiting for I/O and not for a processor.
pub(crate) async fn holding<T>(
    slot: Option<OwnedSemaphorePermit>,
    work: impl Future<Output = T>,
) -> T {
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
async fn handshake(
    shared: &Shared,
    definition: &Arc<Definition>,
    tasks: &ConnectionTasks,
    starts: &Starts,
) -> Result<connect::Connected, ConnectError> {
    let slots = &shared.slots;
    let known: Option<Era> = definition.era.or(shared.era());
    let assumed = definition.era.is_none() && known.is_some();
    let mut first = Definition::clone(definition);
    first.era = known;
    let mut connected = connect::connect(&Arc::new(first), tasks, slots, starts).await;
    if assumed && let Err(error) = &connected {
        if known == Some(Era::Stateless) || error.may_be_wrong_era() {
            // The next attempt detects the era again.
            shared.forget_era();
        }
        if error.may_be_wrong_era() && !matches!(error, ConnectError::Timeout { .. }) {
            // The process has not crashed: it refused the era, and was stopped.
            starts.clear();
            connected = connect::connect(definition, tasks, slots, starts).await;
        }
    }
    if let Ok(done) = &connected {
        shared.note_era(done.facts.revision.era());
    }
    connected
}
