//! Who waits for what: where messages of the server find those they are for.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plexus_mcp::messages::{CancelledParams, ProgressParams};
use plexus_mcp::{key, method};
use plexus_wire::{Id, Message, Notification, Object, Raw, Response, RpcError};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::in_flight::Slot;
use super::numbers::NumberMap;
use super::turns::{Meant, Turns};
use super::{Misdeeds, RpcFailure, Traits, Update};
use crate::asks::Asks;
use crate::link::{Incoming, Junk, LinkError, Number, QUEUE};
use crate::lock::lock;

/// How many messages of our own may wait for a server that does not read.
const MAX_NOTICES: usize = 4 * QUEUE;
/// How many requests that were given up are remembered, whose late answers are no surprise.
const GIVEN_UP: usize = 1024;

/// Where the ways to a server put what comes from it.
///
/// It never waits for a consumer: a request that does not take its notifications loses them, and
/// holds up nobody else.
pub(crate) struct Board {
    table: Mutex<Table>,
    stray: mpsc::Sender<Update>,
    pub(super) misdeeds: Mutex<Misdeeds>,
    /// Whether the server must not send requests, and we no responses.
    pub(super) stateless: AtomicBool,
    pub(super) turns: Arc<Turns>,
    /// Something is in the table for the connection's task.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Table {
    pending: NumberMap<Number, Pending>,
    /// To which requests the server's questions were put.
    asked: HashMap<Id, Number>,
    /// Answers to these may still come.
    given_up: VecDeque<Number>,
    /// What the server is to be told that no caller said.
    notices: VecDeque<Message>,
    /// When the connection's task is to look for requests that are late.
    look: Option<Instant>,
    /// The way to the server is at its end.
    lost: Option<LinkError>,
    /// No more requests are taken.
    is_over: bool,
}

struct Pending {
    slot: Arc<Slot>,
    traits: Traits,
}

impl Board {
    /// A board on which nothing is. What belongs to no request goes to `stray`.
    pub(crate) fn new(stray: mpsc::Sender<Update>, asks: Asks) -> Self {
        Self {
            table: Mutex::default(),
            stray,
            misdeeds: Mutex::default(),
            stateless: AtomicBool::default(),
            turns: Arc::new(Turns::new(asks)),
            changed: Notify::new(),
        }
    }

    /// Takes what came from the server to where it belongs.
    pub(crate) fn take(&self, incoming: Incoming) {
        match incoming {
            Incoming::Message { message, of } => self.message(message, of),
            Incoming::Failed { request, error } => {
                lock(&self.table).finish(request, Err(error.into()));
            }
            Incoming::Junk(junk) => self.junk(junk),
            Incoming::Closed(error) => {
                lock(&self.table).lost.get_or_insert(error);
                self.changed.notify_one();
            }
        }
    }

    /// A place for what comes for a request, unless the connection is over.
    pub(super) fn expect(&self, number: Number, traits: Traits) -> Option<Arc<Slot>> {
        let mut table = lock(&self.table);
        if table.is_over {
            return None;
        }
        let slot = Arc::<Slot>::default();
        let pending = Pending {
            slot: Arc::clone(&slot),
            traits,
        };
        table.pending.insert(number, pending);
        Some(slot)
    }

    /// How many requests wait for their answers.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.table).pending.len()
    }

    /// Nobody waits for this request any more. Gives what it was about, unless it is answered.
    pub(super) fn give_up(&self, number: Number) -> Option<Traits> {
        let mut table = lock(&self.table);
        let pending = table.pending.remove(&number)?;
        table.asked.retain(|_, of| *of != number);
        if table.given_up.len() >= GIVEN_UP {
            table.given_up.pop_front();
        }
        table.given_up.push_back(number);
        Some(pending.traits)
    }

    /// A question of the server was answered.
    pub(super) fn answered(&self, id: &Id) {
        lock(&self.table).asked.remove(id);
    }

    /// Has the connection's task tell the server something.
    pub(super) fn notice(&self, message: Message) {
        let mut table = lock(&self.table);
        if table.notices.len() < MAX_NOTICES {
            table.notices.push_back(message);
            self.changed.notify_one();
        } else {
            // A server that asks without end and never reads has itself to blame.
            lock(&self.misdeeds).dropped += 1;
        }
    }

    /// The next message that no caller sends.
    pub(super) fn next_notice(&self) -> Option<Message> {
        lock(&self.table).notices.pop_front()
    }

    /// Has the connection's task look for requests that are late, at `deadline` if not before.
    pub(super) fn watch(&self, deadline: Instant) {
        let mut table = lock(&self.table);
        if table.look.is_none_or(|look| deadline < look) {
            table.look = Some(deadline);
            self.changed.notify_one();
        }
    }

    /// When to look for requests that are late.
    pub(super) fn next_look(&self) -> Option<Instant> {
        lock(&self.table).look
    }

    /// Tells those who wait for requests that are late.
    pub(super) fn look(&self, now: Instant) {
        let mut table = lock(&self.table);
        let slots = table.pending.values().map(|pending| &pending.slot);
        table.look = slots.filter_map(|slot| slot.expire(now)).min();
    }

    /// Why the way to the server is at its end, if it is.
    pub(super) fn lost(&self) -> Option<LinkError> {
        lock(&self.table).lost.clone()
    }

    /// Fails all requests, and takes no more.
    pub(super) fn close(&self, error: &LinkError) {
        let mut table = lock(&self.table);
        table.is_over = true;
        for (_, pending) in table.pending.drain() {
            pending.slot.answer(Err(error.clone().into()));
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
                    tracing::debug!(?id, "an answer that nobody waits for any more");
                } else {
                    tracing::debug!(?id, "an answer to nobody");
                    lock(&self.misdeeds).unknown_answers += 1;
                }
            }
            Message::Notification(notification) => {
                let mut table = lock(&self.table);
                let number = of.or_else(|| table.meant(&notification, &self.turns));
                self.update(&mut table, number, Update::Notification(notification));
            }
            Message::Request(request) if self.stateless.load(Ordering::Relaxed) => {
                tracing::debug!(method = %request.method, "a request of a stateless server");
                lock(&self.misdeeds).requests += 1;
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
                let number = of.or_else(|| table.askable(&self.turns));
                let refused = self.update(&mut table, number, Update::Request(request));
                drop(table);
                if let Some(Update::Request(request)) = refused {
                    let busy = RpcError {
                        code: plexus_mcp::code::INTERNAL_ERROR,
                        message: "too many requests at once".to_owned(),
                        data: None,
                    };
                    self.notice(Message::Response(Response {
                        id: Some(request.id),
                        outcome: Err(busy),
                    }));
                }
            }
        }
    }

    /// Hands an update on, or gives it back if whom it is for does not take any.
    fn update(&self, table: &mut Table, number: Option<Number>, update: Update) -> Option<Update> {
        let pending = number.and_then(|number| table.pending.get(&number));
        if let (Update::Request(request), Some(number), Some(_)) = (&update, number, pending) {
            table.asked.insert(request.id.clone(), number);
        }
        let taken = match (pending, number) {
            (Some(pending), _) => pending.slot.update(update),
            // Progress of a request that is over.
            (None, Some(_)) if matches!(update, Update::Notification(_)) => return None,
            (None, _) => self
                .stray
                .try_send(update)
                .map_err(mpsc::error::TrySendError::into_inner),
        };
        let refused = taken.err();
        if refused.is_some() {
            lock(&self.misdeeds).dropped += 1;
        }
        refused
    }

    fn junk(&self, junk: Junk) {
        let mut misdeeds = lock(&self.misdeeds);
        match junk {
            Junk::NotJson(line) => {
                tracing::debug!(%line, "the server said something that is no JSON");
                misdeeds.not_json += 1;
                misdeeds.last_junk = Some(line);
            }
            Junk::NotAMessage(line) => {
                misdeeds.not_a_message += 1;
                misdeeds.last_junk = Some(line);
            }
            Junk::TooLong => misdeeds.too_long += 1,
        }
    }
}

impl Table {
    /// Answers a request, if it is waited for.
    fn finish(&mut self, number: Number, outcome: Result<Raw, RpcFailure>) -> bool {
        let Some(pending) = self.pending.remove(&number) else {
            return false;
        };
        if !self.asked.is_empty() {
            self.asked.retain(|_, of| *of != number);
        }
        pending.slot.answer(outcome);
        true
    }

    /// The request that a notification without a stream of its own belongs to.
    fn meant(&self, notification: &Notification, turns: &Turns) -> Option<Number> {
        let params = notification.params.as_ref();
        match &*notification.method {
            // A question is withdrawn from whom it was put to.
            method::CANCELLED => {
                let params: CancelledParams = params?.decode().ok()?;
                self.asked.get(&params.request_id).copied()
            }
            method::PROGRESS => {
                let params: ProgressParams = params?.decode().ok()?;
                params.progress_token.as_i64()
            }
            // Nothing says whose message it is: it is told to nobody while it might be another's.
            method::LOG => match turns.meant() {
                Meant::Caller(caller) => self.only_caller(|traits| traits.caller == Some(caller)),
                _ => self.only_caller(|traits| traits.caller.is_some()),
            },
            // What a subscription says names it (SUB26-06).
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

    /// The request during which a question was asked that does not say so: the newest that can be
    /// asked, of the only caller that has such. On a pipe no question says it; over HTTP a question on
    /// the stream of no request does not, which is where common servers put theirs.
    fn askable(&self, turns: &Turns) -> Option<Number> {
        match turns.asked() {
            Meant::Caller(caller) => {
                return self
                    .only_caller(|traits| traits.may_be_asked && traits.caller == Some(caller));
            }
            Meant::Unclear => return None,
            Meant::Nobody => {}
        }
        let interactive = |traits: &Traits| traits.interactive;
        if self
            .pending
            .values()
            .any(|pending| interactive(&pending.traits))
        {
            return self.only_caller(interactive);
        }
        // Nobody can answer; whoever cannot tells the server so.
        self.only_caller(|traits| traits.may_be_asked)
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
