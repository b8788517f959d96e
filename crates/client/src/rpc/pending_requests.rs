//! In-flight requests of one connection, keyed by request id, and the dispatch of incoming messages
//! to them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plexus_mcp_protocol::messages::{CancelledParams, ProgressParams};
use plexus_mcp_protocol::{code, key, method};
use plexus_mcp_wire::{Id, Message, Notification, Object, Raw, Request, Response, RpcError};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::caller_lanes::{Caller, CallerLanes, QuestionTarget};
use super::in_flight::{ResponseReceiver, ResponseSender, response_channel};
use super::{ProtocolViolations, RpcFailure, Traits, Update};
use crate::link::{Incoming, LinkError, MAX_QUEUED_MESSAGES, Number, UndecodableMessage};
use crate::lock::lock;

/// Messages of the connection itself that may wait for a server that does not read.
const MAX_QUEUED_NOTICES: usize = 4 * MAX_QUEUED_MESSAGES;
/// Requests that were given up and are remembered: late answers to them are no protocol violation.
const MAX_REMEMBERED_GIVEN_UP: usize = 1024;
/// How long a call that was sent and given up may still ask a question, which must not be put to
/// another principal. Most servers stop when a call is cancelled; some tools go on.
const GIVEN_UP_ASKING_PERIOD: Duration = Duration::from_mins(10);

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
    /// Wakes the check of the session, which may be lost.
    pub(super) session_doubted: Notify,
}

#[derive(Default)]
struct Table {
    pending: HashMap<Number, Pending>,
    /// The request that each open question of the server was dispatched to. A question is removed when
    /// it is answered or withdrawn, or when its request has ended.
    asked: HashMap<Id, Number>,
    /// Requests that were given up: answers to them, or questions for them, may still come.
    given_up: VecDeque<GivenUp>,
    /// Until when a call may ask that was given up and is no longer in `given_up`.
    forgotten_may_ask_until: Option<Instant>,
    /// Messages to the server that the connection itself sends.
    notices: VecDeque<Message>,
    /// Why the transport closed.
    lost: Option<LinkError>,
    /// Why the connection is to be closed as soon as no request is in flight.
    close_when_idle: Option<LinkError>,
    /// No more requests are accepted.
    is_over: bool,
}

struct Pending {
    response: ResponseSender,
    traits: Traits,
}

/// A request whose caller no longer waits for the answer.
struct GivenUp {
    number: Number,
    traits: Traits,
    since: Instant,
}

impl GivenUp {
    /// Whether a message that arrives now may be for this call of another principal, and not for a
    /// call with `traits`.
    fn may_ask_instead_of(&self, traits: &Traits) -> bool {
        self.traits.may_be_asked
            && self.traits.principal != traits.principal
            && self.since.elapsed() < GIVEN_UP_ASKING_PERIOD
    }
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
            session_doubted: Notify::new(),
        }
    }

    /// Dispatches a message or event from the server.
    pub(crate) fn take(&self, incoming: Incoming) {
        match incoming {
            Incoming::Message { message, of } => self.message(message, of),
            Incoming::Failed { request, error } => self.failed(request, error),
            Incoming::Refused { id, error } => self.refuse(id, error),
            Incoming::UndecodableMessage(message) => self.count_undecodable(message),
            Incoming::Closed(error) => {
                lock(&self.table).lost.get_or_insert(error);
                self.changed.notify_one();
            }
        }
    }

    /// Fails a request. If the server may have received it, it may still ask something for it, like
    /// for a request that was given up.
    fn failed(&self, request: Number, error: LinkError) {
        let may_be_running = matches!(error, LinkError::Broken(_));
        let is_session_lost = error == LinkError::SessionLost;
        let mut table = lock(&self.table);
        let Some(traits) = table.finish(request, Err(error.into())) else {
            return;
        };
        // A call that finds the session lost has it renewed. Other requests cannot.
        if is_session_lost && traits.caller.is_none() {
            self.doubt_session();
        }
        if may_be_running {
            table.remember_given_up(request, traits);
        }
        self.close_if_due(&mut table);
    }

    /// The server may have lost the session.
    pub(crate) fn doubt_session(&self) {
        self.session_doubted.notify_one();
    }

    /// Closes the connection as soon as no request is in flight. Requests in flight may still be
    /// answered on their own streams.
    pub(super) fn close_when_idle(&self, error: LinkError) {
        let mut table = lock(&self.table);
        table.close_when_idle = Some(error);
        self.close_if_due(&mut table);
    }

    fn close_if_due(&self, table: &mut Table) {
        if table.pending.is_empty()
            && let Some(error) = table.close_when_idle.take()
        {
            table.lost.get_or_insert(error);
            self.changed.notify_one();
        }
    }

    /// Registers a request, unless the connection is closed.
    pub(super) fn expect(&self, number: Number, traits: Traits) -> Option<ResponseReceiver> {
        let mut table = lock(&self.table);
        if table.is_over || table.lost.is_some() {
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
    pub(super) fn give_up(&self, number: Number, is_sent: bool) -> Option<Traits> {
        let mut table = lock(&self.table);
        let pending = table.pending.remove(&number)?;
        if is_sent {
            table.remember_given_up(number, pending.traits.clone());
        }
        self.close_if_due(&mut table);
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

    /// Fails all requests, and accepts no more. Calls may have reached the server, so none of them
    /// fails with an error that means that it was not carried out.
    pub(super) fn close(&self, error: &LinkError) {
        let of_call = match error {
            LinkError::SessionLost
            | LinkError::Unreachable(_)
            | LinkError::NeedsAuth { .. }
            | LinkError::NoCredentials(_) => LinkError::Broken(error.to_string()),
            error => error.clone(),
        };
        let mut table = lock(&self.table);
        table.is_over = true;
        for (_, Pending { response, traits }) in table.pending.drain() {
            let error = traits.caller.map_or(error, |_| &of_call);
            response.answer(Err(error.clone().into()));
        }
        table.asked.clear();
    }

    fn message(&self, message: Message, of: Option<Number>) {
        match message {
            Message::Response(Response { id, outcome }) => {
                let number = id.as_ref().and_then(Id::as_i64);
                let outcome = outcome.map_err(RpcFailure::Error);
                let mut table = lock(&self.table);
                if number
                    .and_then(|number| table.finish(number, outcome))
                    .is_some()
                {
                    self.close_if_due(&mut table);
                    return;
                }
                if number.is_some_and(|number| table.forget_given_up(number)) {
                    tracing::debug!(?id, "a late answer to a cancelled request");
                } else {
                    tracing::debug!(?id, "an answer to an unknown request");
                    lock(&self.violations).unknown_answers += 1;
                }
            }
            Message::Notification(notification) => {
                let mut table = lock(&self.table);
                let named = table.request_of(&notification, &self.lanes);
                let number = of.or(named);
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
                let table = lock(&self.table);
                let asker = match of {
                    // Requests of our own have no caller that could be asked.
                    Some(number) if table.is_our_own(number) => Asker::NoCall,
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
                self.ask(table, number, request);
            }
        }
    }

    /// Handles a question whose call has ended, unless the server has withdrawn it. On a connection
    /// where questions do not name their call, another call of the same caller may have asked it, so it
    /// is put to the newest of those. Otherwise it is refused, and that is logged.
    pub(super) fn ask_again(&self, request: Request, ended: &Traits, names_calls: bool) {
        let mut table = lock(&self.table);
        if table.asked.remove(&request.id).is_none() {
            return;
        }
        let newest = table.only_caller(|traits| {
            traits.may_be_asked
                && traits.caller == ended.caller
                && traits.principal == ended.principal
        });
        if let Some(number) = newest.filter(|_| !names_calls) {
            return self.ask(table, Some(number), request);
        }
        drop(table);
        tracing::warn!(
            method = %request.method,
            "refused a question of the server: the call that it belongs to has ended"
        );
        let why = "the call that the request belongs to has ended";
        self.refuse(request.id, refusal(code::INVALID_PARAMS, why));
    }

    /// Queues a question for its call, or for `stray`.
    fn ask(&self, mut table: MutexGuard<'_, Table>, number: Option<Number>, request: Request) {
        let refused = self.update(&mut table, number, Update::Request(request));
        drop(table);
        if let Some(Update::Request(request)) = refused {
            let why = "too many requests at once";
            self.refuse(request.id, refusal(code::INTERNAL_ERROR, why));
        }
    }

    /// A server that is spoken to in the stateless era asked in the way of the older one. It cannot be
    /// answered (BASE-17), so the call that asked fails instead of waiting for ever, if it is clear
    /// which one that is.
    fn fail_asking_call(&self, request: &Request, of: Option<Number>) {
        let method = &request.method;
        let mut table = lock(&self.table);
        let asker = of.or_else(|| table.only_call_that_may_ask());
        let waits = matches!(&**method, method::ELICIT | method::SAMPLE);
        let Some(number) = asker.filter(|_| waits) else {
            tracing::warn!(
                %method,
                "ignored a request of the server, which servers of 2026-07-28 must not send; set \
                 \"era\": \"legacy\" in its definition if one of its tools waits for the answer"
            );
            return;
        };
        let why = format!(
            "the server asked the client with a request ({method}), which servers of 2026-07-28 must \
             not do; set \"era\": \"legacy\" in its definition to have it asked in the older way"
        );
        let error = LinkError::InvalidAnswer(why);
        if let Some(traits) = table.finish(number, Err(error.into())) {
            table.remember_given_up(number, traits);
        }
        self.close_if_due(&mut table);
        drop(table);
        if of.is_none() {
            self.notice(cancelled(number));
        }
    }

    /// Refuses a question that may belong to calls of several callers (SAMP-13): a guess could show
    /// data of one caller to another.
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
                // It may have been a notification that a list has changed.
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

    fn count_undecodable(&self, message: UndecodableMessage) {
        let mut violations = lock(&self.violations);
        match message {
            UndecodableMessage::NotJson(line) => {
                tracing::debug!(%line, "the server sent a line that is not JSON");
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
    fn remember_given_up(&mut self, number: Number, traits: Traits) {
        let since = Instant::now();
        if self.given_up.len() >= MAX_REMEMBERED_GIVEN_UP
            && let Some(forgotten) = self.given_up.pop_front()
            && forgotten.traits.may_be_asked
        {
            self.forgotten_may_ask_until = Some(since + GIVEN_UP_ASKING_PERIOD);
        }
        self.given_up.push_back(GivenUp {
            number,
            traits,
            since,
        });
    }

    /// Whether the request was given up. It is answered now, so no question is asked for it any more.
    fn forget_given_up(&mut self, number: Number) -> bool {
        let position = self.given_up.iter().position(|call| call.number == number);
        position.is_some_and(|position| self.given_up.remove(position).is_some())
    }

    /// Whether a message that seems to belong to the request `number` may belong to a call of another
    /// principal that was given up.
    fn may_be_for_given_up_call(&self, number: Number) -> bool {
        let Some(Pending { traits, .. }) = self.pending.get(&number) else {
            return false;
        };
        self.forgotten_may_ask_until
            .is_some_and(|until| Instant::now() < until)
            || self
                .given_up
                .iter()
                .any(|call| call.may_ask_instead_of(traits))
    }

    /// Completes a request, if it is pending, and gives its traits.
    fn finish(&mut self, number: Number, outcome: Result<Raw, RpcFailure>) -> Option<Traits> {
        let pending = self.pending.remove(&number)?;
        pending.response.answer(outcome);
        Some(pending.traits)
    }

    /// The request that a notification without a stream of its own belongs to.
    fn request_of(&mut self, notification: &Notification, lanes: &CallerLanes) -> Option<Number> {
        let params = notification.params.as_ref();
        match &*notification.method {
            // A cancelled question is withdrawn from the call that it was dispatched to.
            method::CANCELLED => {
                let params: CancelledParams = params?.decode().ok()?;
                self.asked.remove(&params.request_id)
            }
            method::PROGRESS => {
                let params: ProgressParams = params?.decode().ok()?;
                params.progress_token.as_i64()
            }
            // A log message names no call: it is dropped if it might belong to another caller.
            method::LOG => {
                let number = match lanes.question_target() {
                    QuestionTarget::Caller(caller) => {
                        self.only_caller(|traits| traits.caller == Some(caller))
                    }
                    QuestionTarget::NoCaller => self.only_caller(|traits| traits.caller.is_some()),
                    QuestionTarget::Unclear => None,
                };
                number.filter(|number| !self.may_be_for_given_up_call(*number))
            }
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

    /// Whether this is a request in flight that no caller made.
    fn is_our_own(&self, number: Number) -> bool {
        let pending = self.pending.get(&number);
        pending.is_some_and(|pending| pending.traits.caller.is_none())
    }

    /// The call that a question without a call id belongs to. On stdio, no question has one; over HTTP,
    /// a question on the standalone GET stream has none, and common servers send theirs there.
    ///
    /// Calls of one caller count as one: whichever of them asked, the same client is asked, on behalf
    /// of the newest. Calls of callers that cannot be asked count, too: the question may be theirs. So
    /// do calls that were given up: the server may not know that yet, or not care.
    fn asker(&self, lanes: &CallerLanes) -> Asker {
        match self.asker_in_flight(lanes) {
            Asker::Call(number) if self.may_be_for_given_up_call(number) => Asker::Unclear,
            asker => asker,
        }
    }

    fn asker_in_flight(&self, lanes: &CallerLanes) -> Asker {
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

    /// The call that may have asked something, if there is exactly one.
    fn only_call_that_may_ask(&self) -> Option<Number> {
        let calls = self.pending.iter();
        let mut calls = calls.filter(|(_, call)| call.traits.may_be_asked);
        let (number, _) = calls.next()?;
        calls.next().is_none().then_some(*number)
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

#[cfg(test)]
mod tests;
