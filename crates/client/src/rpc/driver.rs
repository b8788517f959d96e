//! The one task of a connection.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use plexus_mcp::messages::{CancelledParams, ProgressParams};
use plexus_mcp::{key, method};
use plexus_wire::{Id, Message, Notification, Object, Raw, Response, RpcError, encode};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::turns::{Meant, Turns};
use super::{Abandoned, Command, Ending, InFlight, Misdeeds, RpcFailure, Traits, Update, lock};
use crate::chain::with_last_words;
use crate::link::{Incoming, Junk, Link, LinkError, Number, Outgoing, QUEUE};

/// How many notifications a request may have waiting before further ones are dropped.
const UPDATES: usize = 256;
/// How many messages may wait for a server that does not read; requests stop being taken long before.
const MAX_OUTBOX: usize = 4 * QUEUE;
/// How many requests that were given up are remembered, whose late answers are no surprise.
const GIVEN_UP: usize = 1024;

pub(super) struct Pending {
    updates: mpsc::Sender<Update>,
    answer: oneshot::Sender<Result<Raw, RpcFailure>>,
    traits: Traits,
}

/// The one task of a connection. It never waits for a consumer: a request that does not take its
/// notifications loses them, and holds up nobody else.
pub(super) struct Driver {
    pub(super) link: Link,
    pub(super) stray: mpsc::Sender<Update>,
    pub(super) pending: HashMap<Number, Pending>,
    /// To which requests the server's questions were put.
    pub(super) asked: HashMap<Id, Number>,
    /// Answers to these may still come.
    pub(super) given_up: VecDeque<Number>,
    /// Waits for the server to read.
    pub(super) outbox: VecDeque<Box<Outgoing>>,
    pub(super) abandoned: Arc<Abandoned>,
    pub(super) misdeeds: Arc<Mutex<Misdeeds>>,
    /// Whether the server must not send requests, and we no responses.
    pub(super) stateless: Arc<AtomicBool>,
    pub(super) turns: Arc<Turns>,
    pub(super) stop: CancellationToken,
    pub(super) ending: Ending,
}

impl Driver {
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::Receiver<Command>,
        mut incoming: mpsc::Receiver<Incoming>,
        _closed: DropGuard,
    ) {
        let abandoned = Arc::clone(&self.abandoned);
        let stop = self.stop.clone();
        let closed = |why: &str| LinkError::Closed(why.to_owned());
        let error = loop {
            // No branch waits for the server to read, and none goes first: a server that floods us
            // or does not read can be called, cancelled and ended like any other.
            tokio::select! {
                incoming = incoming.recv() => match incoming {
                    Some(Incoming::Closed(error)) => break error,
                    Some(incoming) => self.incoming(incoming),
                    None => break closed("the connection has ended"),
                },
                () = stop.cancelled() => break closed("the connection was closed"),
                () = abandoned.changed.notified() => self.cancel_abandoned(),
                () = self.link.room(), if !self.outbox.is_empty() => self.send_outbox(),
                order = orders.recv(), if self.outbox.len() < QUEUE => match order {
                    Some(order) => self.order(order),
                    // Nobody is left to use the connection.
                    None => break closed("the connection was dropped"),
                },
            }
        };
        // Whoever still wants to tell us something must not wait for us.
        drop(incoming);
        drop(orders);
        // A call that was given up just before still is to be cancelled.
        self.cancel_abandoned();
        self.ended(error).await;
    }

    fn order(&mut self, order: Command) {
        match order {
            Command::Request {
                number,
                method,
                params,
                headers,
                traits,
                started,
            } => {
                let mut message = BytesMut::new();
                encode::request(&mut message, &Id::from(number), &method, params.as_ref());
                let (updates, taken) = mpsc::channel(UPDATES);
                let (answer, answered) = oneshot::channel();
                self.pending.insert(
                    number,
                    Pending {
                        updates,
                        answer,
                        traits,
                    },
                );
                let in_flight = InFlight {
                    number,
                    updates: taken,
                    answer: answered,
                    answered: false,
                    abandoned: Arc::clone(&self.abandoned),
                };
                // Who ordered it may be gone; dropping it then abandons it.
                drop(started.send(in_flight));
                let message = message.freeze();
                self.post(Outgoing {
                    message,
                    request: Some(number),
                    headers,
                    taken: None,
                });
            }
            Command::Send(message, taken) => {
                if let Message::Response(Response { id: Some(id), .. }) = &message {
                    self.asked.remove(id);
                }
                let outgoing = Outgoing {
                    taken,
                    ..Outgoing::plain(encoded(&message))
                };
                self.post(outgoing);
            }
            Command::With(action) => action(&self.link),
        }
    }

    fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Message { message, of } => self.message(message, of),
            Incoming::Failed { request, error } => self.finish(request, Err(error.into())),
            Incoming::Junk(junk) => self.junk(junk),
            Incoming::Closed(_) => {}
        }
    }

    fn message(&mut self, message: Message, of: Option<Number>) {
        match message {
            Message::Response(Response { id, outcome }) => {
                let number = id.as_ref().and_then(Id::as_i64);
                if let Some(number) = number.filter(|number| self.pending.contains_key(number)) {
                    self.finish(number, outcome.map_err(RpcFailure::Error));
                } else if number.is_some_and(|number| self.given_up.contains(&number)) {
                    tracing::debug!(?id, "an answer that nobody waits for any more");
                } else {
                    tracing::debug!(?id, "an answer to nobody");
                    lock(&self.misdeeds).unknown_answers += 1;
                }
            }
            Message::Notification(notification) => {
                let number = of.or_else(|| self.meant(&notification));
                self.update(number, Update::Notification(notification));
            }
            Message::Request(request) if self.stateless.load(Ordering::Relaxed) => {
                tracing::debug!(method = %request.method, "a request of a stateless server");
                lock(&self.misdeeds).requests += 1;
            }
            Message::Request(request) if &*request.method == method::PING => {
                let outcome = Ok(Raw::empty_object());
                self.send(&Message::Response(Response {
                    id: Some(request.id),
                    outcome,
                }));
            }
            Message::Request(request) => {
                let number = of.or_else(|| self.askable());
                self.update(number, Update::Request(request));
            }
        }
    }

    /// The request that a notification without a stream of its own belongs to.
    fn meant(&self, notification: &Notification) -> Option<Number> {
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
            method::LOG => match self.turns.meant() {
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
    fn askable(&self) -> Option<Number> {
        match self.turns.asked() {
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

    fn update(&mut self, number: Option<Number>, update: Update) {
        let pending = number.and_then(|number| self.pending.get(&number));
        if let (Update::Request(request), Some(number), Some(_)) = (&update, number, pending) {
            self.asked.insert(request.id.clone(), number);
        }
        let refused = match (pending, number) {
            (Some(pending), _) => pending.updates.try_send(update),
            // Progress of a request that is over.
            (None, Some(_)) if matches!(update, Update::Notification(_)) => return,
            (None, _) => self.stray.try_send(update),
        };
        if let Err(error) = refused {
            lock(&self.misdeeds).dropped += 1;
            if let Update::Request(request) = error.into_inner() {
                let busy = RpcError {
                    code: plexus_mcp::code::INTERNAL_ERROR,
                    message: "too many requests at once".to_owned(),
                    data: None,
                };
                let response = Response {
                    id: Some(request.id),
                    outcome: Err(busy),
                };
                self.send(&Message::Response(response));
            }
        }
    }

    fn junk(&mut self, junk: Junk) {
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

    /// The one way out of the table of requests.
    fn finish(&mut self, number: Number, outcome: Result<Raw, RpcFailure>) {
        if let Some(pending) = self.pending.remove(&number) {
            self.asked.retain(|_, of| *of != number);
            // Whoever asked may not want to know any more.
            drop(pending.answer.send(outcome));
        }
    }

    fn cancel_abandoned(&mut self) {
        let numbers = std::mem::take(&mut *lock(&self.abandoned.numbers));
        for number in numbers {
            let Some(pending) = self.pending.remove(&number) else {
                continue;
            };
            self.asked.retain(|_, of| *of != number);
            if self.given_up.len() >= GIVEN_UP {
                self.given_up.pop_front();
            }
            self.given_up.push_back(number);
            if self.link.give_up(number) && !pending.traits.uncancellable {
                let params = CancelledParams {
                    request_id: number.into(),
                    reason: None,
                };
                let params = Some(params.to_raw());
                let method = method::CANCELLED.into();
                self.send(&Message::Notification(Notification { method, params }));
            }
        }
    }

    fn send(&mut self, message: &Message) {
        self.post(Outgoing::plain(encoded(message)));
    }

    /// Sends, in order, as soon as there is room.
    fn post(&mut self, outgoing: Outgoing) {
        if self.outbox.len() >= MAX_OUTBOX && outgoing.request.is_none() {
            // A server that asks without end and never reads has itself to blame.
            lock(&self.misdeeds).dropped += 1;
            return;
        }
        self.outbox.push_back(Box::new(outgoing));
        self.send_outbox();
    }

    fn send_outbox(&mut self) {
        while let Some(outgoing) = self.outbox.pop_front() {
            if let Err(returned) = self.link.try_send(outgoing) {
                self.outbox.push_front(returned);
                return;
            }
        }
    }

    async fn ended(mut self, error: LinkError) {
        let error = explained(error, &self.link.last_words());
        *lock(&self.ending.reason) = Some(error.clone());
        let numbers: Vec<_> = self.pending.keys().copied().collect();
        for number in numbers {
            self.finish(number, Err(error.clone().into()));
        }
        self.link.close().await;
    }
}

fn encoded(message: &Message) -> Bytes {
    let mut bytes = BytesMut::new();
    encode::message(&mut bytes, message);
    bytes.freeze()
}

/// Why a process ended is best said by its own last words.
fn explained(error: LinkError, last_words: &[String]) -> LinkError {
    match error {
        LinkError::Closed(reason) => LinkError::Closed(with_last_words(&reason, last_words)),
        error => error,
    }
}
