//! Requests and their answers: our ids, who waits for what, who is told what.

mod board;
mod driver;
mod in_flight;
mod numbers;
mod turns;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use plexus_mcp::messages::CancelledParams;
use plexus_mcp::method;
use plexus_wire::{Id, Message, Notification, Raw, Request, Response, RpcError, encode};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::link::{Headers, Link, LinkError, Number, Outgoing, QUEUE};
use crate::lock::lock;
use crate::stamp::Stamped;
pub(crate) use board::Board;
use driver::Driver;
use in_flight::Carriage;
pub(crate) use in_flight::{InFlight, Next};
pub(crate) use turns::{Caller, Turn, Turns};

/// How much room a request has that is as short as most.
const ROOM: usize = 512;
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
    shared: Arc<Shared>,
    /// The connection ends with the last of these.
    orders: mpsc::Sender<Order>,
    last: Arc<AtomicI64>,
    pub(crate) turns: Arc<Turns>,
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

/// Something that a caller wants the server to be told.
struct Order {
    message: Message,
    /// Dropped when the server has taken the message, or cannot.
    taken: Option<oneshot::Sender<()>>,
}

/// What all who use a connection share.
struct Shared {
    link: Link,
    board: Arc<Board>,
    stop: CancellationToken,
    ending: Ending,
    tasks: TaskTracker,
}

impl Shared {
    /// Nobody waits for a request any more.
    fn give_up(&self, number: Number, is_sent: bool) {
        let Some(traits) = self.board.give_up(number) else {
            return;
        };
        if is_sent && self.link.is_told_of_cancellation() && !traits.uncancellable {
            let params = CancelledParams {
                request_id: number.into(),
                reason: None,
            };
            let params = Some(params.to_raw());
            let method = method::CANCELLED.into();
            let notification = Notification { method, params };
            self.board.notice(Message::Notification(notification));
        }
    }
}

impl Rpc {
    /// Takes charge of `link`, which puts what comes on `board`.
    pub(crate) fn start(tasks: &TaskTracker, link: Link, board: Arc<Board>) -> Self {
        let (orders, ordered) = mpsc::channel(QUEUE);
        let turns = Arc::clone(&board.turns);
        let shared = Arc::new(Shared {
            link,
            board,
            stop: CancellationToken::new(),
            ending: Ending::default(),
            tasks: tasks.clone(),
        });
        let driver = Driver {
            shared: Arc::clone(&shared),
            outbox: VecDeque::new(),
        };
        let ended = shared.ending.ended.clone().drop_guard();
        tasks.spawn(driver.run(ordered, ended));
        Self {
            shared,
            orders,
            last: Arc::default(),
            turns,
        }
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
        headers: Headers,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        let number = self.reserve();
        let mut message = BytesMut::new();
        encode::request(&mut message, &Id::from(number), method, params.as_ref());
        self.send(number, message, headers, traits).await
    }

    /// Sends a request under a reserved number.
    pub(crate) async fn request_as(
        &self,
        number: Number,
        method: &str,
        stamped: &Stamped<'_>,
        headers: Headers,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        let Stamped { params, meta } = stamped;
        let mut message = BytesMut::with_capacity(ROOM);
        encode::request_with(&mut message, &Id::from(number), method, params);
        if let Some(meta) = meta {
            put_meta(&mut message, meta, params.is_empty());
        }
        self.send(number, message, headers, traits).await
    }

    async fn send(
        &self,
        number: Number,
        message: BytesMut,
        headers: Headers,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        let shared = &self.shared;
        let Some(slot) = shared.board.expect(number, traits) else {
            return Err(shared.ending.reason().into());
        };
        let mut in_flight = InFlight::new(number, slot, Arc::clone(shared));
        if let Link::Http(link) = &shared.link {
            let exchange = link.exchange(number, message.freeze(), headers);
            in_flight.is_carried(Carriage::Own(exchange));
            return Ok(in_flight);
        }
        let mut outgoing = Outgoing {
            message,
            request: Some(number),
            waiting: shared.board.waiting(),
            taken: None,
        };
        while let Err(returned) = shared.link.try_send(outgoing) {
            shared.link.room().await;
            outgoing = returned;
        }
        in_flight.is_carried(Carriage::Shared);
        Ok(in_flight)
    }

    /// Sends a notification, and waits until the server has it.
    pub(crate) async fn notify_and_wait(&self, method: &str) {
        let message = Message::Notification(Notification {
            method: method.into(),
            params: None,
        });
        let (taken, waiting) = oneshot::channel();
        self.order(message, Some(taken)).await;
        drop(tokio::time::timeout(TAKEN, waiting).await);
    }

    /// Answers a question of the server.
    pub(crate) async fn respond(&self, id: Id, outcome: Result<Raw, RpcError>) {
        let response = Response {
            id: Some(id),
            outcome,
        };
        self.order(Message::Response(response), None).await;
    }

    /// From now on the server is a stateless one, which is never sent a response (BASE-17).
    pub(crate) fn set_stateless(&self) {
        self.shared.board.stateless.store(true, Ordering::Relaxed);
    }

    /// The way to the server.
    pub(crate) fn link(&self) -> &Link {
        &self.shared.link
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        self.stop();
        self.shared.ending.ended.cancelled().await;
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Whether the connection has ended, or is ending.
    pub(crate) fn is_over(&self) -> bool {
        let shared = &self.shared;
        shared.stop.is_cancelled() || shared.ending.ended.is_cancelled() || self.orders.is_closed()
    }

    /// Tells when the connection ends.
    pub(crate) fn ending(&self) -> Ending {
        self.shared.ending.clone()
    }

    pub(crate) fn misdeeds(&self) -> Misdeeds {
        lock(&self.shared.board.misdeeds).clone()
    }

    async fn order(&self, message: Message, taken: Option<oneshot::Sender<()>>) {
        // A closed connection is noticed by whoever waits for an answer.
        drop(self.orders.send(Order { message, taken }).await);
    }
}

/// Makes `_meta` the last of the parameters of a request, which come last in it themselves.
fn put_meta(message: &mut BytesMut, meta: &Raw, is_alone: bool) {
    message.truncate(message.len().saturating_sub(2));
    if !is_alone {
        message.extend_from_slice(b",");
    }
    message.extend_from_slice(br#""_meta":"#);
    message.extend_from_slice(&encode::single_line(meta));
    message.extend_from_slice(b"}}");
}
