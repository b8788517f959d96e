//! Requests and their answers: our ids, who waits for what, who is told what.

mod driver;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderMap;
use plexus_mcp::method;
use plexus_wire::{Id, Message, Notification, Raw, Request, Response, RpcError};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::asks::Asks;
use crate::link::{Incoming, Link, LinkError, Number, QUEUE};
use crate::lock::lock;
use crate::status::ProcessInfo;
use driver::Driver;
pub(crate) use turns::{Caller, Turn, Turns};

/// How long a server may take to take a notification that we wait for.
const TAKEN: Duration = Duration::from_secs(10);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RpcFailure {
    /// The server says so.
    #[error(transparent)]
    Error(RpcError),
    /// It did not get there, or the answer did not get here.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl RpcFailure {
    /// No answer came within `patience`.
    pub(crate) fn late(method: &str, patience: Duration) -> Self {
        let text = format!(
            "{method} was not answered within {} s",
            patience.as_secs_f32()
        );
        LinkError::Broken(text).into()
    }
}

/// Something the server says during a request.
#[derive(Debug)]
pub(crate) enum Update {
    Notification(Notification),
    /// A question, which must be answered.
    Request(Request),
}

/// What a request is about, as far as it matters for whom the server may mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    /// Whose call it is; `None` for a request of our own.
    pub(crate) caller: Option<Caller>,
    /// The server may ask something during it.
    pub(crate) may_be_asked: bool,
    /// And its caller can answer.
    pub(crate) interactive: bool,
    /// It must not be cancelled by a message (CAN-02).
    pub(crate) uncancellable: bool,
}

impl Traits {
    /// Those of a call of `caller`, who can be asked something during it or not.
    pub(crate) fn call(caller: Caller, method: &str, interactive: bool) -> Self {
        let may_be_asked = method::may_ask(method);
        Self {
            caller: Some(caller),
            may_be_asked,
            interactive,
            uncancellable: false,
        }
    }
}

/// Counts of what a server did that it should not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misdeeds {
    /// Lines that were no JSON.
    pub not_json: u64,
    /// JSON that was no JSON-RPC message.
    pub not_a_message: u64,
    /// Messages beyond the limit.
    pub too_long: u64,
    /// Answers to nobody.
    pub unknown_answers: u64,
    /// Requests of a stateless server, which must not send any.
    pub requests: u64,
    /// Notifications that came faster than anybody took them.
    pub dropped: u64,
    /// The last line that was no message.
    pub last_junk: Option<String>,
}

/// The connection to one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rpc {
    commands: mpsc::Sender<Command>,
    last: Arc<AtomicI64>,
    abandoned: Arc<Abandoned>,
    misdeeds: Arc<Mutex<Misdeeds>>,
    stateless: Arc<AtomicBool>,
    pub(crate) turns: Arc<Turns>,
    stop: CancellationToken,
    ending: Ending,
}

/// Tells when and why a connection ended, without keeping it.
#[derive(Clone, Default)]
pub(crate) struct Ending {
    ended: CancellationToken,
    reason: Arc<Mutex<Option<LinkError>>>,
}

impl Ending {
    /// Waits until the connection has ended.
    pub(crate) async fn wait(&self) -> LinkError {
        self.ended.cancelled().await;
        self.reason()
    }

    fn reason(&self) -> LinkError {
        let reason = lock(&self.reason).clone();
        reason.unwrap_or_else(|| LinkError::Closed("the connection has ended".to_owned()))
    }
}

enum Command {
    Request {
        number: Number,
        method: Box<str>,
        params: Option<Raw>,
        headers: HeaderMap,
        traits: Traits,
        started: oneshot::Sender<InFlight>,
    },
    Send(Message, Option<oneshot::Sender<()>>),
    With(Box<dyn FnOnce(&Link) + Send>),
}

/// Requests that nobody waits for any more, to be taken up by the connection's task. Bounded by the
/// requests in flight.
#[derive(Default)]
struct Abandoned {
    numbers: Mutex<Vec<Number>>,
    changed: Notify,
}

/// A request that was sent. Dropping it before its answer cancels it.
pub(crate) struct InFlight {
    number: Number,
    updates: mpsc::Receiver<Update>,
    answer: oneshot::Receiver<Result<Raw, RpcFailure>>,
    answered: bool,
    abandoned: Arc<Abandoned>,
}

/// What a request in flight brings next.
pub(crate) enum Next {
    Update(Update),
    Answer(Result<Raw, RpcFailure>),
}

impl InFlight {
    /// The next thing; nothing after the answer. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(update) = self.updates.recv() => Next::Update(update),
            answer = &mut self.answer => {
                self.answered = true;
                let gone = || Err(LinkError::Closed("the connection has ended".to_owned()).into());
                Next::Answer(answer.unwrap_or_else(|_| gone()))
            }
        }
    }

    /// The answer; what comes before it is of no interest.
    pub(crate) async fn answer(mut self) -> Result<Raw, RpcFailure> {
        loop {
            if let Next::Answer(answer) = self.next().await {
                return answer;
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.answered {
            lock(&self.abandoned.numbers).push(self.number);
            self.abandoned.changed.notify_one();
        }
    }
}

impl Rpc {
    /// Takes charge of `link`. What belongs to no request goes to `stray`.
    pub(crate) fn start(
        tasks: &TaskTracker,
        link: Link,
        incoming: mpsc::Receiver<Incoming>,
        stray: mpsc::Sender<Update>,
        asks: Asks,
    ) -> Self {
        let (commands, orders) = mpsc::channel(QUEUE);
        let rpc = Self {
            commands,
            last: Arc::default(),
            abandoned: Arc::default(),
            misdeeds: Arc::default(),
            stateless: Arc::default(),
            turns: Arc::new(Turns::new(asks)),
            stop: CancellationToken::new(),
            ending: Ending::default(),
        };
        let driver = Driver {
            link,
            stray,
            pending: HashMap::new(),
            outbox: VecDeque::new(),
            given_up: VecDeque::new(),
            asked: HashMap::new(),
            abandoned: Arc::clone(&rpc.abandoned),
            misdeeds: Arc::clone(&rpc.misdeeds),
            stateless: Arc::clone(&rpc.stateless),
            turns: Arc::clone(&rpc.turns),
            stop: rpc.stop.clone(),
            ending: rpc.ending.clone(),
        };
        let ended = rpc.ending.ended.clone().drop_guard();
        tasks.spawn(driver.run(orders, incoming, ended));
        rpc
    }

    /// A number for a request: never used twice (BASE-03), and good as its progress token.
    pub(crate) fn reserve(&self) -> Number {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
        headers: HeaderMap,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        self.request_as(self.reserve(), method, params, headers, traits)
            .await
    }

    /// Sends a request under a reserved number.
    pub(crate) async fn request_as(
        &self,
        number: Number,
        method: &str,
        params: Option<Raw>,
        headers: HeaderMap,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        let (started, in_flight) = oneshot::channel();
        let command = Command::Request {
            number,
            method: method.into(),
            params,
            headers,
            traits,
            started,
        };
        let closed = || RpcFailure::Link(self.ending.reason());
        self.commands
            .send(command)
            .await
            .map_err(|_gone| closed())?;
        in_flight.await.map_err(|_gone| closed())
    }

    /// Sends a notification, and waits until the server has it.
    pub(crate) async fn notify_and_wait(&self, method: &str) {
        let message = Message::Notification(Notification {
            method: method.into(),
            params: None,
        });
        let (taken, waiting) = oneshot::channel();
        if self
            .commands
            .send(Command::Send(message, Some(taken)))
            .await
            .is_ok()
        {
            drop(tokio::time::timeout(TAKEN, waiting).await);
        }
    }

    /// Answers a question of the server.
    pub(crate) async fn respond(&self, id: Id, outcome: Result<Raw, RpcError>) {
        self.send(Message::Response(Response {
            id: Some(id),
            outcome,
        }))
        .await;
    }

    /// From now on the server is a stateless one, which is never sent a response (BASE-17).
    pub(crate) fn set_stateless(&self) {
        self.stateless.store(true, Ordering::Relaxed);
    }

    /// Does something with the link.
    pub(crate) async fn with_link(&self, action: impl FnOnce(&Link) + Send + 'static) {
        drop(self.commands.send(Command::With(Box::new(action))).await);
    }

    /// What the server's process last said on its standard error.
    pub(crate) async fn last_words(&self) -> Vec<String> {
        let (tell, told) = oneshot::channel();
        self.with_link(|link| drop(tell.send(link.last_words())))
            .await;
        told.await.unwrap_or_default()
    }

    /// The server's process, if it is one of ours.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        let (tell, told) = oneshot::channel();
        self.with_link(|link| drop(tell.send(link.process()))).await;
        told.await.ok().flatten()
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        self.stop();
        self.ending.ended.cancelled().await;
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether the connection has ended, or is ending.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.ending.ended.is_cancelled() || self.commands.is_closed()
    }

    /// Tells when the connection ends.
    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone()
    }

    pub(crate) fn misdeeds(&self) -> Misdeeds {
        lock(&self.misdeeds).clone()
    }

    async fn send(&self, message: Message) {
        // A closed connection is noticed by whoever waits for an answer.
        drop(self.commands.send(Command::Send(message, None)).await);
    }
}
