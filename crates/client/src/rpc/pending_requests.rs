//! In-flight requests of one connection, keyed by request id, and the dispatch of incoming messages
//! to them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plexus_mcp_protocol::messages::{CancelledParams, ProgressParams};
use plexus_mcp_protocol::{code, key, method};
use plexus_mcp_wire::{Id, Message, Notification, Object, Raw, Request, Response, RpcError};
use tokio::sync::{Notify, mpsc};

use super::caller_lanes::{Caller, CallerLanes, QuestionTarget};
use super::in_flight::{ResponseReceiver, ResponseSender, response_channel};
use super::{ProtocolViolations, RpcFailure, Traits, Update};
use crate::link::{Incoming, LinkError, MAX_QUEUED_MESSAGES, Number, UndecodableMessage};
use crate::lock::lock;

/// Messages of the connection itself that may wait for a server that does not read.
const MAX_QUEUED_NOTICES: usize = 4 * MAX_QUEUED_MESSAGES;
/// Ids of cancelled requests that are remembered: late answers to them are no protocol violation.
const MAX_REMEMBERED_CANCELLED_IDS: usize = 1024;

/// Dispatches the messages of a server to the requests that they belong to.
///
/// It never waits for a consumer: a request that does not take its notifications loses them, and
/// delays no other request.
pub(crate) struct PendingRequests {
    table: Mutex<Table>,
    stray: mpsc::Sender<Update>,
    pub(super) violations: Mutex<ProtocolViolations>,
    /// Whether the server must not send requests, and we no responses.
    pub(super) stateless: AtomicBool,
    pub(super) lanes: Arc<CallerLanes>,
    /// Notifications were dropped because they came too fast.
    lagged: AtomicBool,
    /// Wakes the connection's task: the table has something for it.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Table {
    pending: HashMap<Number, Pending>,
    /// The request that each open question of the server was dispatched to.
    asked: HashMap<Id, Number>,
    /// Cancelled requests: answers to them may still come.
    given_up: VecDeque<Number>,
    /// Messages to the server that the connection itself sends.
    notices: VecDeque<Message>,
    /// Why the transport closed.
    lost: Option<LinkError>,
    /// No more requests are accepted.
    is_over: bool,
}

struct Pending {
    response: ResponseSender,
    traits: Traits,
}

impl PendingRequests {
    /// An empty table. Notifications and requests that belong to no in-flight request go to `stray`.
    pub(crate) fn new(stray: mpsc::Sender<Update>) -> Self {
        Self {
            table: Mutex::default(),
            stray,
            violations: Mutex::default(),
            stateless: AtomicBool::default(),
            lanes: Arc::default(),
            lagged: AtomicBool::default(),
            changed: Notify::new(),
        }
    }

    /// Dispatches a message or event from the server.
    pub(crate) fn take(&self, incoming: Incoming) {
        match incoming {
            Incoming::Message { message, of } => self.message(message, of),
            Incoming::Failed { request, error } => {
                lock(&self.table).finish(request, Err(error.into()));
            }
            Incoming::Refused { id, error } => self.refuse(id, error),
            Incoming::UndecodableMessage(junk) => self.junk(junk),
            Incoming::Closed(error) => {
                lock(&self.table).lost.get_or_insert(error);
                self.changed.notify_one();
            }
        }
    }

    /// Registers a request, unless the connection is closed.
    pub(super) fn expect(&self, number: Number, traits: Traits) -> Option<ResponseReceiver> {
        let mut table = lock(&self.table);
        if table.is_over {
            return None;
        }
        let (response, receiver) = response_channel();
        table.pending.insert(number, Pending { response, traits });
        Some(receiver)
    }

    /// Whether notifications were dropped since the last call.
    pub(super) fn take_lagged(&self) -> bool {
        self.lagged.swap(false, Ordering::Relaxed)
    }

    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.table).pending.is_empty()
    }

    /// Removes a request whose caller gave up. Gives its traits, unless it was already answered.
    pub(super) fn give_up(&self, number: Number) -> Option<Traits> {
        let mut table = lock(&self.table);
        let pending = table.pending.remove(&number)?;
        table.asked.retain(|_, of| *of != number);
        if table.given_up.len() >= MAX_REMEMBERED_CANCELLED_IDS {
            table.given_up.pop_front();
        }
        table.given_up.push_back(number);
        Some(pending.traits)
    }

    /// Removes a question of the server that was answered.
    pub(super) fn answered(&self, id: &Id) {
        lock(&self.table).asked.remove(id);
    }

    /// Queues a message for the connection's task to send.
    pub(super) fn notice(&self, message: Message) {
        let mut table = lock(&self.table);
        if table.notices.len() < MAX_QUEUED_NOTICES {
            table.notices.push_back(message);
            self.changed.notify_one();
        } else {
            // The server asks without end and never reads.
            lock(&self.violations).dropped += 1;
        }
    }

    /// The next message that the connection itself sends.
    pub(super) fn next_notice(&self) -> Option<Message> {
        lock(&self.table).notices.pop_front()
    }

    /// Why the transport closed, if it did.
    pub(super) fn lost(&self) -> Option<LinkError> {
        lock(&self.table).lost.clone()
    }

    /// Fails all requests, and accepts no more.
    pub(super) fn close(&self, error: &LinkError) {
        let mut table = lock(&self.table);
        table.is_over = true;
        for (_, pending) in table.pending.drain() {
            pending.response.answer(Err(error.clone().into()));
        }
        table.asked.clear();
    }

    fn message(&self, message: Message, of: Option<Number>) {
        match message {
            Message::Response(Response { id, outcome }) => {
                let number = id.as_ref().and_then(Id::as_i64);
                let outcome = outcome.map_err(RpcFailure::Error);
                let mut table = lock(&self.table);
                if number.is_some_and(|number| table.finish(number, outcome)) {
                    return;
                }
                if number.is_some_and(|number| table.given_up.contains(&number)) {
                    tracing::debug!(?id, "a late answer to a cancelled request");
                } else {
                    tracing::debug!(?id, "an answer to an unknown request");
                    lock(&self.violations).unknown_answers += 1;
                }
            }
            Message::Notification(notification) => {
                let mut table = lock(&self.table);
                let number = of.or_else(|| table.request_of(&notification, &self.lanes));
                self.update(&mut table, number, Update::Notification(notification));
            }
            Message::Request(request) if self.stateless.load(Ordering::Relaxed) => {
                lock(&self.violations).requests += 1;
                self.fail_asking_call(&request, of);
            }
            Message::Request(request) if &*request.method == method::PING => {
                let outcome = Ok(Raw::empty_object());
                self.notice(Message::Response(Response {
                    id: Some(request.id),
                    outcome,
                }));
            }
            Message::Request(request) => {
                let mut table = lock(&self.table);
                let asker = match of {
                    Some(number) => Asker::Call(number),
                    None => table.asker(&self.lanes),
                };
                // Roots can always be answered, if only with none: for them, no call need wait.
                let is_roots = &*request.method == method::ROOTS_LIST;
                if !is_roots && !matches!(asker, Asker::NoCall) {
                    self.lanes.asked();
                }
                let number = match asker {
                    Asker::Call(number) => Some(number),
                    Asker::NoCall => None,
                    Asker::Unclear if is_roots => None,
                    Asker::Unclear => {
                        drop(table);
                        return self.refuse_unclear(request);
                    }
                };
                let refused = self.update(&mut table, number, Update::Request(request));
                drop(table);
                if let Some(Update::Request(request)) = refused {
                    self.refuse(
                        request.id,
                        refusal(code::INTERNAL_ERROR, "too many requests at once"),
                    );
                }
            }
        }
    }

    /// A server that is spoken to in the stateless era asked in the way of the older one. It cannot be
    /// answered (BASE-17), so the call that asked fails instead of waiting for ever, if it is clear
    /// which one that is.
    fn fail_asking_call(&self, request: &Request, of: Option<Number>) {
        let method = &request.method;
        let mut table = lock(&self.table);
        let asker = of.map_or_else(|| table.asker(&self.lanes), Asker::Call);
        let waits = matches!(&**method, method::ELICIT | method::SAMPLE);
        let Asker::Call(number) = asker else {
            tracing::debug!(%method, "ignored a request of a server of 2026-07-28");
            return;
        };
        if !waits {
            return;
        }
        let why = format!(
            "the server asked the client with a request ({method}), which servers of 2026-07-28 must \
             not do; set \"era\": \"legacy\" in its definition to have it asked in the older way"
        );
        table.finish(number, Err(LinkError::InvalidAnswer(why).into()));
        drop(table);
        if of.is_none() {
            self.notice(cancelled(number));
        }
    }

    /// A question that may be of several callers is put to none of them (SAMP-13): a guess could show
    /// one caller what another's call is about.
    fn refuse_unclear(&self, request: Request) {
        tracing::warn!(
            method = %request.method,
            "refused a question of the server: calls of several callers are in flight, and it does \
             not say which of them it belongs to"
        );
        let why = "calls of several clients are in flight, and the request does not say which of \
                   them it belongs to; try again";
        self.refuse(request.id, refusal(code::INVALID_PARAMS, why));
    }

    /// Queues an update for its request, or for `stray`. Returns the update if that queue is full.
    fn update(&self, table: &mut Table, number: Option<Number>, update: Update) -> Option<Update> {
        let pending = number.and_then(|number| table.pending.get(&number));
        if let (Update::Request(request), Some(number), Some(_)) = (&update, number, pending) {
            table.asked.insert(request.id.clone(), number);
        }
        let taken = match (pending, number) {
            (Some(pending), _) => pending.response.update(update),
            // Progress of a request that is over.
            (None, Some(_)) if matches!(update, Update::Notification(_)) => return None,
            (None, _) => self
                .stray
                .try_send(update)
                .map_err(mpsc::error::TrySendError::into_inner),
        };
        let refused = taken.err();
        if let Some(update) = &refused {
            lock(&self.violations).dropped += 1;
            match update {
                Update::Request(request) => drop(table.asked.remove(&request.id)),
                // It may have said that a list has changed.
                Update::Notification(_) => self.lagged.store(true, Ordering::Relaxed),
            }
        }
        refused
    }

    /// Answers a request of the server with an error, unless the server must not send any.
    fn refuse(&self, id: Id, error: RpcError) {
        if self.stateless.load(Ordering::Relaxed) {
            lock(&self.violations).requests += 1;
            return;
        }
        self.notice(Message::Response(Response {
            id: Some(id),
            outcome: Err(error),
        }));
    }

    fn junk(&self, junk: UndecodableMessage) {
        let mut violations = lock(&self.violations);
        match junk {
            UndecodableMessage::NotJson(line) => {
                tracing::debug!(%line, "the server said something that is no JSON");
                violations.not_json += 1;
                violations.last_undecodable = Some(line);
            }
            UndecodableMessage::NotAMessage(line) => {
                violations.not_a_message += 1;
                violations.last_undecodable = Some(line);
            }
            UndecodableMessage::TooLong => violations.too_long += 1,
        }
    }
}

/// The notification that cancels a request.
pub(super) fn cancelled(number: Number) -> Message {
    let params = CancelledParams {
        request_id: number.into(),
        reason: None,
    };
    Message::Notification(Notification {
        method: method::CANCELLED.into(),
        params: Some(params.to_raw()),
    })
}

fn refusal(code: i64, message: &str) -> RpcError {
    RpcError {
        code,
        message: message.to_owned(),
        data: None,
    }
}

/// The call that a question without a call id belongs to.
enum Asker {
    Call(Number),
    /// The server asks outside of any call.
    NoCall,
    /// Calls of several callers are in flight.
    Unclear,
}

impl Table {
    /// Completes a request, if it is pending.
    fn finish(&mut self, number: Number, outcome: Result<Raw, RpcFailure>) -> bool {
        let Some(pending) = self.pending.remove(&number) else {
            return false;
        };
        if !self.asked.is_empty() {
            self.asked.retain(|_, of| *of != number);
        }
        pending.response.answer(outcome);
        true
    }

    /// The request that a notification without a stream of its own belongs to.
    fn request_of(&self, notification: &Notification, lanes: &CallerLanes) -> Option<Number> {
        let params = notification.params.as_ref();
        match &*notification.method {
            // A cancelled question is withdrawn from the call that it was dispatched to.
            method::CANCELLED => {
                let params: CancelledParams = params?.decode().ok()?;
                self.asked.get(&params.request_id).copied()
            }
            method::PROGRESS => {
                let params: ProgressParams = params?.decode().ok()?;
                params.progress_token.as_i64()
            }
            // A log message names no call: it is dropped if it might belong to another caller.
            method::LOG => match lanes.question_target() {
                QuestionTarget::Caller(caller) => {
                    self.only_caller(|traits| traits.caller == Some(caller))
                }
                _ => self.only_caller(|traits| traits.caller.is_some()),
            },
            // A notification of a subscription has the subscription id in `_meta` (SUB26-06).
            _ => {
                let params = Object::parse(params?).ok()?;
                let meta = Object::parse(params.get("_meta")?).ok()?;
                meta.get(key::SUBSCRIPTION_ID)?
                    .decode::<Id>()
                    .ok()?
                    .as_i64()
            }
        }
    }

    /// The call that a question without a call id belongs to. On stdio, no question has one; over HTTP,
    /// a question on the standalone GET stream has none, and common servers send theirs there.
    ///
    /// Calls of one caller count as one: whichever of them asked, the same client is asked, on behalf
    /// of the newest. Calls of callers that cannot be asked count, too: the question may be theirs.
    fn asker(&self, lanes: &CallerLanes) -> Asker {
        let may_ask = |traits: &Traits| traits.may_be_asked;
        let of_caller = |caller: Caller| {
            self.only_caller(|traits| may_ask(traits) && traits.caller == Some(caller))
        };
        match lanes.question_target() {
            QuestionTarget::Caller(caller) => {
                return of_caller(caller).map_or(Asker::NoCall, Asker::Call);
            }
            QuestionTarget::Unclear => return Asker::Unclear,
            QuestionTarget::NoCaller => {}
        }
        if let Some(number) = self.only_caller(may_ask) {
            return Asker::Call(number);
        }
        let mut pending = self.pending.values();
        if pending.any(|pending| may_ask(&pending.traits)) {
            Asker::Unclear
        } else {
            Asker::NoCall
        }
    }

    /// The newest of such requests, if all of them are of one caller.
    fn only_caller(&self, is_such: impl Fn(&Traits) -> bool) -> Option<Number> {
        let such = || {
            self.pending
                .iter()
                .filter(|(_, pending)| is_such(&pending.traits))
        };
        let (number, newest) = such().max_by_key(|(number, _)| **number)?;
        let caller = newest.traits.caller;
        such()
            .all(|(_, pending)| pending.traits.caller == caller)
            .then_some(*number)
    }
}
