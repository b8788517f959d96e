//! JSON-RPC over one connection: request ids, in-flight requests, cancellation.

mod caller_lanes;
mod driver;
mod in_flight;
mod pending_requests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use plexus_mcp_core::{Boxed, Principal};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Id, Message, Notification, Raw, Request, Response, RpcError, encode};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::child::Grace;
use crate::hop_metadata::ParamsWithMeta;
use crate::link::{Headers, Incoming, Link, LinkError, MAX_QUEUED_MESSAGES, Number, Outgoing};
use crate::lock::lock;
pub(crate) use caller_lanes::{Caller, CallerLanes, Lane};
use driver::Driver;
use in_flight::Transfer;
pub(crate) use in_flight::{InFlight, Next};
pub(crate) use pending_requests::PendingRequests;

/// The initial buffer for an encoded request.
const REQUEST_BUFFER_BYTES: usize = 512;
/// How long to wait until a notification has been sent.
const NOTIFICATION_SENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a process that was killed is waited for.
const PROCESS_REAP_TIMEOUT: Duration = Duration::from_millis(100);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RpcFailure {
    /// The server answered with an error.
    #[error(transparent)]
    Error(RpcError),
    /// The transport failed.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl RpcFailure {
    /// No answer came within `timeout`.
    pub(crate) fn late(method: &str, timeout: Duration) -> Self {
        let text = format!(
            "{method} was not answered within {} s",
            timeout.as_secs_f32()
        );
        LinkError::Broken(text).into()
    }
}

/// A message of the server during a request.
#[derive(Debug)]
pub(crate) enum Update {
    Notification(Notification),
    /// A question, which must be answered.
    Request(Request),
}

/// Properties of a request that decide how the server's questions are dispatched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traits {
    /// Whose call it is; `None` for a request of our own.
    pub(crate) caller: Option<Caller>,
    /// The principal of the caller.
    pub(crate) principal: Option<Principal>,
    /// The server may ask something during it.
    pub(crate) may_be_asked: bool,
    /// It must not be cancelled by a message (CAN-02).
    pub(crate) uncancellable: bool,
}

impl Traits {
    /// Those of a call of `caller`.
    pub(crate) fn call(caller: Caller, principal: &Principal, method: &str) -> Self {
        let may_be_asked = method::allows_input_required(method);
        Self {
            caller: Some(caller),
            principal: Some(principal.clone()),
            may_be_asked,
            uncancellable: false,
        }
    }
}

/// Counts of a server's protocol violations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtocolViolations {
    /// Lines that were not JSON.
    pub not_json: u64,
    /// JSON that was not a JSON-RPC message.
    pub not_a_message: u64,
    /// Messages beyond the limit.
    pub too_long: u64,
    /// Responses to unknown requests.
    pub unknown_answers: u64,
    /// Requests of a stateless server, which must not send any.
    pub requests: u64,
    /// Messages that were dropped because a queue was full: notifications and requests of the server,
    /// and our own answers and cancellations.
    pub dropped: u64,
    /// The last line that was not a message.
    pub last_undecodable: Option<String>,
}

/// The connection to one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rpc {
    shared: Arc<Inner>,
    /// The connection ends with the last of these.
    orders: mpsc::Sender<Order>,
    last: Arc<AtomicI64>,
    pub(crate) lanes: Arc<CallerLanes>,
}

/// Reports when and why a connection ended, without keeping it open.
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

/// A notification or response to send.
struct Order {
    message: Message,
    /// Dropped when the message is queued (stdio), its POST was answered (HTTP), or it cannot be sent.
    taken: Option<oneshot::Sender<()>>,
}

/// State that the clones of an [`Rpc`] and the connection's task share.
struct Inner {
    link: Link,
    pending_requests: Arc<PendingRequests>,
    stop: CancellationToken,
    ending: Ending,
    tasks: ConnectionTasks,
}

/// The tasks of the connections that one attempt to connect opens, and how long their processes may
/// take to exit. Clones share both.
#[derive(Clone, Default)]
pub(crate) struct ConnectionTasks {
    tracker: TaskTracker,
    grace: Arc<Mutex<Grace>>,
}

impl ConnectionTasks {
    pub(crate) fn set_grace(&self, grace: Grace) {
        *lock(&self.grace) = grace;
    }

    fn grace(&self) -> Grace {
        *lock(&self.grace)
    }

    /// Waits until all tasks have ended, but hardly longer than their processes may take to exit.
    pub(crate) async fn ended(&self) {
        self.tracker.close();
        let limit = self.grace().total() + PROCESS_REAP_TIMEOUT;
        drop(tokio::time::timeout(limit, self.tracker.wait()).await);
    }
}

impl Inner {
    /// Whether the server is notified when such a request is given up.
    fn cancels(&self, traits: &Traits) -> bool {
        self.link.is_told_of_cancellation() && !traits.uncancellable
    }

    /// Cancels a request whose caller gave up.
    fn give_up(&self, number: Number, is_sent: bool) {
        let Some(traits) = self.pending_requests.give_up(number, is_sent) else {
            return;
        };
        if is_sent && self.cancels(&traits) {
            self.pending_requests
                .notice(pending_requests::cancelled(number));
        }
    }
}

impl Rpc {
    /// Starts the task of a connection. `work` reads and writes, and dispatches incoming messages to
    /// `pending_requests`.
    pub(crate) fn start(
        tasks: &ConnectionTasks,
        link: Link,
        work: Boxed<()>,
        pending_requests: Arc<PendingRequests>,
    ) -> Self {
        let (orders, ordered) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let lanes = Arc::clone(&pending_requests.lanes);
        let shared = Arc::new(Inner {
            link,
            pending_requests,
            stop: CancellationToken::new(),
            ending: Ending::default(),
            tasks: tasks.clone(),
        });
        let driver = Driver {
            shared: Arc::clone(&shared),
            work,
            outbox: VecDeque::new(),
        };
        let ended = shared.ending.ended.clone().drop_guard();
        tasks.tracker.spawn(driver.run(ordered, ended));
        Self {
            shared,
            orders,
            last: Arc::default(),
            lanes,
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
        params: &ParamsWithMeta<'_>,
        headers: Headers,
        traits: Traits,
    ) -> Result<InFlight, RpcFailure> {
        let ParamsWithMeta { params, meta } = params;
        let mut message = BytesMut::with_capacity(REQUEST_BUFFER_BYTES);
        encode::request_with_object(&mut message, &Id::from(number), method, params);
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
        let Some(received) = shared.pending_requests.expect(number, traits.clone()) else {
            // Nothing was sent, so the request can be made on another connection.
            let reason = shared.ending.reason().to_string();
            return Err(LinkError::Unreachable(reason).into());
        };
        let mut in_flight = InFlight::new(number, traits, received, Arc::clone(shared));
        if let Link::Http(link) = &shared.link {
            let exchange = link.exchange(number, message.freeze(), headers);
            in_flight.set_transfer(Transfer::Exchange(exchange));
            return Ok(in_flight);
        }
        let outgoing = Outgoing {
            message,
            request: Some(number),
            taken: None,
        };
        let room = shared.link.room().await;
        shared.link.send(room, outgoing);
        in_flight.set_transfer(Transfer::Shared);
        Ok(in_flight)
    }

    /// Sends a notification, and waits until it is queued (stdio) or its POST was answered (HTTP).
    pub(crate) async fn notify_and_wait(&self, method: &str) {
        let message = Message::Notification(Notification {
            method: method.into(),
            params: None,
        });
        let (taken, waiting) = oneshot::channel();
        self.order(message, Some(taken)).await;
        drop(tokio::time::timeout(NOTIFICATION_SENT_TIMEOUT, waiting).await);
    }

    /// Answers a question of the server.
    pub(crate) async fn respond(&self, id: Id, outcome: Result<Raw, RpcError>) {
        let response = Response {
            id: Some(id),
            outcome,
        };
        self.order(Message::Response(response), None).await;
    }

    /// The same, without waiting for room.
    pub(crate) fn respond_now(&self, id: Id, outcome: Result<Raw, RpcError>) {
        self.shared.pending_requests.answered(&id);
        let id = Some(id);
        self.shared
            .pending_requests
            .notice(Message::Response(Response { id, outcome }));
    }

    /// From now on the server is a stateless one, which is never sent a response (BASE-17).
    pub(crate) fn set_stateless(&self) {
        self.shared
            .pending_requests
            .stateless
            .store(true, Ordering::Relaxed);
    }

    /// The transport.
    pub(crate) fn link(&self) -> &Link {
        &self.shared.link
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        self.close_within(Grace::default()).await;
    }

    /// The same, giving the server's process only so long to end.
    pub(crate) async fn close_within(&self, grace: Grace) {
        self.shared.tasks.set_grace(grace);
        self.stop();
        self.shared.ending.ended.cancelled().await;
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// The server cannot be reached: ends the connection, unless a request may still be answered.
    pub(crate) fn close_if_idle(&self, error: &LinkError) {
        let pending_requests = &self.shared.pending_requests;
        if pending_requests.is_idle() {
            pending_requests.take(Incoming::Closed(error.clone()));
        }
    }

    /// The server may have lost the session: wakes [`session_doubted`](Self::session_doubted).
    pub(crate) fn doubt_session(&self) {
        self.shared.pending_requests.doubt_session();
    }

    /// Waits until the server may have lost the session.
    pub(crate) async fn session_doubted(&self) {
        self.shared
            .pending_requests
            .session_doubted
            .notified()
            .await;
    }

    /// Ends the connection as soon as no request is in flight.
    pub(crate) fn close_when_idle(&self, error: LinkError) {
        self.shared.pending_requests.close_when_idle(error);
    }

    /// Whether the connection has ended, or is ending.
    pub(crate) fn is_over(&self) -> bool {
        let shared = &self.shared;
        shared.stop.is_cancelled()
            || shared.ending.ended.is_cancelled()
            || self.orders.is_closed()
            || shared.pending_requests.lost().is_some()
    }

    /// Why the connection has ended.
    pub(crate) fn end_reason(&self) -> LinkError {
        self.shared.ending.reason()
    }

    /// Reports the end of the connection.
    pub(crate) fn ending(&self) -> Ending {
        self.shared.ending.clone()
    }

    /// Whether notifications were dropped since the last call.
    pub(crate) fn take_lagged(&self) -> bool {
        self.shared.pending_requests.take_lagged()
    }

    pub(crate) fn violations(&self) -> ProtocolViolations {
        lock(&self.shared.pending_requests.violations).clone()
    }

    async fn order(&self, message: Message, taken: Option<oneshot::Sender<()>>) {
        // A closed connection fails the requests that wait for answers.
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
