//! Calls of a legacy server.

use std::collections::{HashMap, VecDeque};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plexus_mcp::messages::{CancelledParams, ClientCapability};
use plexus_mcp::{Era, Fault, code, method};
use plexus_service::{AskError, Boxed, Call};
use plexus_wire::{Id, Notification, Object, Params, Raw, Request, RpcError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{CallFailure, Live, Session, ask, caller, is_interactive, late, visit};
use crate::link::Headers;
use crate::rpc::{InFlight, Next, RpcFailure, Traits, Turn, Update};
use crate::stamp;

/// The most questions that one call may have open.
const MAX_QUESTIONS: usize = 32;
/// The most times that a call is made again because pages had to be visited first.
const MAX_ROUNDS: usize = 10;

/// Carries out a call. Dropping the future cancels it at the server.
pub(super) async fn call(live: &Live, session: &Session, call: &Call) -> Result<Raw, CallFailure> {
    let end = Instant::now() + live.definition.timeouts.call_total;
    if live.definition.prime_roots {
        let priming = live.in_time(&call.method, session.prime(call));
        Box::pin(priming).await?;
    }
    if live.facts.capabilities.logging && call.events.log_level().is_some() {
        let setting = live.in_time(&call.method, session.log_for(call));
        Box::pin(setting).await?;
    }
    for _ in 0..MAX_ROUNDS {
        match attempt(live, session, call, end).await {
            // The server refused to begin, so it can be asked again (TRANSLATION §5.5).
            Err(CallFailure::Fault(Fault::Upstream(error)))
                if error.code == code::URL_ELICITATION_REQUIRED
                    && method::may_ask(&call.method) =>
            {
                let visiting = Box::pin(visit::required(session, call, error));
                let visited = tokio::time::timeout_at(end, visiting).await;
                if let Some(result) = visited.map_err(|_elapsed| late(&call.method))?? {
                    return Ok(result);
                }
            }
            outcome => return outcome,
        }
    }
    let text = format!("the server wanted pages visited more than {MAX_ROUNDS} times");
    Err(Fault::Internal(text).into())
}

/// One request and its answer.
async fn attempt(
    live: &Live,
    session: &Session,
    call: &Call,
    end: Instant,
) -> Result<Raw, CallFailure> {
    let caller = caller(call);
    let turn = if session.mixes_questions && method::may_ask(&call.method) {
        let turn = session.rpc.turns.take(caller, &call.peer().principal);
        Some(live.in_time(&call.method, turn).await?)
    } else {
        None
    };
    let number = session.rpc.reserve();
    // Progress keeps the clock from running out, so it is asked for wherever it helps.
    let wants_progress = call.events.wants_progress() || &*call.method == method::TOOLS_CALL;
    let token = wants_progress.then_some(number);
    let params = stamp::handshake(&call.method, &call.params, token);
    let traits = Traits::call(caller, &call.method, is_interactive(call));
    let rpc = &session.rpc;
    let request = rpc.request_as(number, &call.method, &params, Headers::new(), traits);
    let mut in_flight = live.in_time(&call.method, request).await??;
    let deadline = live.deadline(&call.method, end);
    match in_flight.next_before(deadline).await {
        // Most servers say nothing before they answer.
        Some(Next::Answer(answer)) => concluded(call, answer, None),
        Some(Next::Update(first)) => {
            let following = Following {
                live,
                session,
                call,
                in_flight,
                answering: FuturesUnordered::new(),
                open: HashMap::new(),
                answers: VecDeque::new(),
                turn,
                lacking: None,
            };
            Box::pin(following.finish(first, end)).await
        }
        None => Err(late(&call.method).into()),
    }
}

/// An answer on its way to the server that asked.
type Answering = Boxed<Option<(Id, Result<Raw, AskError>, plexus_service::Question)>>;

/// A call on its way.
struct Following<'a> {
    live: &'a Live,
    session: &'a Session,
    call: &'a Call,
    in_flight: InFlight,
    answering: FuturesUnordered<Answering>,
    /// Open questions; dropping an entry withdraws its question from the caller.
    open: HashMap<Id, oneshot::Sender<()>>,
    /// Answers that wait for the call's turn.
    answers: VecDeque<(Id, Result<Raw, RpcError>)>,
    /// Set where questions do not say which call they belong to.
    turn: Option<Turn>,
    /// What the caller cannot be asked and was to be.
    lacking: Option<ClientCapability>,
}

impl Following<'_> {
    async fn finish(mut self, first: Update, end: Instant) -> Result<Raw, CallFailure> {
        self.told(first).await;
        loop {
            let deadline = if self.open.is_empty() {
                self.live.deadline(&self.call.method, end)
            } else {
                end
            };
            tokio::select! {
                next = self.in_flight.next_before(deadline) => match next {
                    Some(Next::Answer(answer)) => return concluded(self.call, answer, self.lacking),
                    Some(Next::Update(update)) => self.told(update).await,
                    None => return Err(late(&self.call.method).into()),
                },
                Some(answered) = self.answering.next() => self.answered(answered),
                () = go_on(&mut self.turn), if self.may_go_on() => self.give_answers().await,
            }
        }
    }

    async fn told(&mut self, update: Update) {
        match update {
            Update::Notification(notification) => self.notified(notification).await,
            Update::Request(request) => self.asked(request).await,
        }
    }

    /// Whether the call has what it waited for, or its question was withdrawn.
    fn may_go_on(&self) -> bool {
        let waits = self.turn.as_ref().is_some_and(Turn::is_waiting);
        !self.answers.is_empty() || (waits && self.open.is_empty())
    }

    async fn notified(&mut self, notification: Notification) {
        if &*notification.method == method::CANCELLED {
            if let Some(Ok(params)) = notification
                .params
                .as_ref()
                .map(Raw::decode::<CancelledParams>)
            {
                self.open.remove(&params.request_id);
            }
            return;
        }
        let events = &self.call.events;
        self.live.relay(self.session, notification, events).await;
    }

    async fn asked(&mut self, request: Request) {
        let rpc = &self.session.rpc;
        if self.open.len() >= MAX_QUESTIONS {
            rpc.respond(request.id, Err(ask::too_many())).await;
            return;
        }
        let Some(question) = ask::question(&request.method, request.params.map(Params::into_raw))
        else {
            let outcome = Err(ask::unknown(&request.method));
            rpc.respond(request.id, outcome).await;
            return;
        };
        if let (plexus_service::Question::Roots, Some(roots)) = (&question, self.session.roots()) {
            rpc.respond(request.id, Ok(roots)).await;
            return;
        }
        // The caller may take its time, and the call may not even be looked after meanwhile.
        if let Some(turn) = &mut self.turn {
            turn.wait();
        }
        let (withdraw, withdrawn) = oneshot::channel();
        self.open.insert(request.id.clone(), withdraw);
        let events = self.call.events.clone();
        self.answering.push(Box::pin(async move {
            let answered = tokio::select! {
                answered = events.ask(None, question.clone()) => answered,
                _ = withdrawn => return None,
            };
            Some((request.id, answered, question))
        }));
    }

    /// Gives the server its answers, now that it is clear whose further questions are.
    async fn give_answers(&mut self) {
        while let Some((id, outcome)) = self.answers.pop_front() {
            self.session.rpc.respond(id, outcome).await;
        }
        if let Some(turn) = self.turn.as_mut().filter(|_| !self.open.is_empty()) {
            turn.wait();
        }
    }

    /// Takes note of an answer. A question that was withdrawn needs none.
    fn answered(
        &mut self,
        answered: Option<(Id, Result<Raw, AskError>, plexus_service::Question)>,
    ) {
        let Some((id, answered, question)) = answered else {
            return;
        };
        if self.open.remove(&id).is_none() {
            return;
        }
        if let Err(AskError::Unsupported(capability)) = &answered {
            self.lacking = Some(*capability);
        }
        let features = self.session.revision.features();
        let outcome: Result<Raw, RpcError> =
            ask::answer(&question, answered, self.call.peer(), features);
        self.answers.push_back((id, outcome));
    }
}

/// What the caller is told. A call that failed for want of something that the caller cannot do is told
/// as that, where there is a way to (META26-05).
fn concluded(
    call: &Call,
    answer: Result<Raw, RpcFailure>,
    lacking: Option<ClientCapability>,
) -> Result<Raw, CallFailure> {
    let stateless = call.peer().revision.era() == Era::Stateless;
    let lacking = lacking.filter(|_| stateless);
    match (answer, lacking) {
        (Ok(result), Some(lacking)) if is_error(&result) => {
            Err(Fault::MissingCapability(lacking).into())
        }
        (Err(RpcFailure::Error(_)), Some(lacking)) => Err(Fault::MissingCapability(lacking).into()),
        (answer, _) => Ok(stamp::of_no_legacy_hop(answer?)),
    }
}

/// Waits until the call may ask, where that has to be waited for.
async fn go_on(turn: &mut Option<Turn>) {
    if let Some(turn) = turn {
        turn.go_on().await;
    }
}

/// Whether the result says that the tool failed.
fn is_error(result: &Raw) -> bool {
    let object = Object::parse(result).ok();
    object.is_some_and(|object| {
        let is_error = object.get("isError").map(Raw::decode::<bool>);
        matches!(is_error, Some(Ok(true)))
    })
}
