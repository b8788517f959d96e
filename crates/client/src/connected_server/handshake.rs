//! Calls of a legacy server.

use std::collections::{HashMap, VecDeque};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use plexus_mcp_core::{AskError, Boxed, Call};
use plexus_mcp_protocol::messages::{CancelledParams, ClientCapability};
use plexus_mcp_protocol::{Era, Fault, code, method};
use plexus_mcp_wire::{Id, Notification, Object, Raw, Request, RpcError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{CallFailure, ConnectedServer, Session, ask, caller, can_be_asked, late, visit};
use crate::hop_metadata;
use crate::link::Headers;
use crate::rpc::{InFlight, Lane, Next, RpcFailure, Traits, Update};

/// The most questions that one call may have open.
const MAX_OPEN_QUESTIONS_PER_CALL: usize = 32;
/// The most times that a call is made again because pages had to be visited first.
const MAX_VISIT_ROUNDS: usize = 10;

/// Carries out a call. Dropping the future cancels it at the server.
pub(super) async fn call(
    server: &ConnectedServer,
    session: &Session,
    call: &Call,
) -> Result<Raw, CallFailure> {
    let end = Instant::now() + server.definition.timeouts.call_total;
    if server.definition.prime_roots {
        let priming = server.in_time(&call.method, session.prime(call));
        Box::pin(priming).await?;
    }
    if server.facts.capabilities.logging && call.events.log_level().is_some() {
        let setting = server.in_time(&call.method, session.log_for(call));
        Box::pin(setting).await?;
    }
    for _ in 0..MAX_VISIT_ROUNDS {
        match attempt(server, session, call, end).await {
            // The server refused to begin, so it can be asked again (TRANSLATION §5.5).
            Err(CallFailure::Fault(Fault::Upstream(error)))
                if error.code == code::URL_ELICITATION_REQUIRED
                    && method::allows_input_required(&call.method) =>
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
    let text = format!("the server wanted pages visited more than {MAX_VISIT_ROUNDS} times");
    Err(Fault::Internal(text).into())
}

/// One request and its answer.
async fn attempt(
    server: &ConnectedServer,
    session: &Session,
    call: &Call,
    end: Instant,
) -> Result<Raw, CallFailure> {
    let caller = caller(call);
    let lane = if session.mixes_questions && method::allows_input_required(&call.method) {
        let (lanes, peer) = (&session.rpc.lanes, call.peer());
        let lane = lanes.enter(caller, &peer.principal, can_be_asked(peer));
        Some(lane.await)
    } else {
        None
    };
    let number = session.rpc.reserve();
    // Progress keeps the clock from running out, so it is asked for wherever it helps.
    let wants_progress = call.events.wants_progress() || &*call.method == method::TOOLS_CALL;
    let token = wants_progress.then_some(number);
    let params = hop_metadata::handshake(&call.method, &call.params, token);
    let traits = Traits::call(caller, &call.method);
    let rpc = &session.rpc;
    let request = rpc.request_as(number, &call.method, &params, Headers::new(), traits);
    let mut in_flight = server.in_time(&call.method, request).await??;
    let deadline = server.deadline(&call.method, end);
    match in_flight.next_before(deadline).await {
        // Most servers say nothing before they answer.
        Some(Next::Answer(answer)) => concluded(call, answer, None),
        Some(Next::Update(first)) => {
            let following = Following {
                server,
                session,
                call,
                in_flight,
                answering: FuturesUnordered::new(),
                open: HashMap::new(),
                answers: VecDeque::new(),
                lane,
                lacking: None,
            };
            Box::pin(following.finish(first, end)).await
        }
        None => Err(late(&call.method).into()),
    }
}

/// An answer on its way to the server that asked.
type Answering = Boxed<Option<(Id, Result<Raw, AskError>, plexus_mcp_core::Question)>>;

/// A question that the caller was asked. Dropping it withdraws the question from the caller.
struct OpenQuestion {
    /// As the server put it.
    request: Request,
    _withdraw: oneshot::Sender<()>,
}

/// A call on its way.
struct Following<'a> {
    server: &'a ConnectedServer,
    session: &'a Session,
    call: &'a Call,
    in_flight: InFlight,
    answering: FuturesUnordered<Answering>,
    /// Open questions.
    open: HashMap<Id, OpenQuestion>,
    /// Answers that wait for the call's lane.
    answers: VecDeque<(Id, Result<Raw, RpcError>)>,
    /// Set where questions do not say which call they belong to.
    lane: Option<Lane>,
    /// The missing capability of the caller that a question needed.
    lacking: Option<ClientCapability>,
}

impl Following<'_> {
    async fn finish(mut self, first: Update, end: Instant) -> Result<Raw, CallFailure> {
        self.handle_update(first).await;
        loop {
            let deadline = if self.open.is_empty() {
                self.server.deadline(&self.call.method, end)
            } else {
                end
            };
            tokio::select! {
                next = self.in_flight.next_before(deadline) => match next {
                    Some(Next::Answer(answer)) => {
                        // A call that was parked may have its answers by now.
                        while let Some(Some(answered)) = self.answering.next().now_or_never() {
                            self.answered(answered);
                        }
                        return concluded(self.call, answer, self.lacking);
                    }
                    Some(Next::Update(update)) => self.handle_update(update).await,
                    None => return Err(late(&self.call.method).into()),
                },
                Some(answered) = self.answering.next() => self.answered(answered),
                () = go_on(&mut self.lane), if self.may_go_on() => self.give_answers().await,
            }
        }
    }

    async fn handle_update(&mut self, update: Update) {
        match update {
            Update::Notification(notification) => self.notified(notification).await,
            Update::Request(request) => self.asked(request).await,
        }
    }

    /// Whether the call has what it waited for, or its question was withdrawn.
    fn may_go_on(&self) -> bool {
        let waits = self.lane.as_ref().is_some_and(Lane::is_waiting);
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
        self.server.relay(self.session, notification, events).await;
    }

    async fn asked(&mut self, request: Request) {
        let rpc = &self.session.rpc;
        if self.open.len() >= MAX_OPEN_QUESTIONS_PER_CALL {
            rpc.respond(request.id, Err(ask::too_many())).await;
            return;
        }
        let params = request.params.clone();
        let Some(question) = ask::question(&request.method, params) else {
            let outcome = Err(ask::unknown(&request.method));
            rpc.respond(request.id, outcome).await;
            return;
        };
        if let (plexus_mcp_core::Question::Roots, Some(roots)) = (&question, self.session.roots()) {
            rpc.respond(request.id, Ok(roots)).await;
            return;
        }
        // The caller may take its time, and the call may not even be polled meanwhile.
        if let Some(lane) = &mut self.lane {
            lane.wait();
        }
        let (withdraw, withdrawn) = oneshot::channel();
        let id = request.id.clone();
        let open = OpenQuestion {
            request,
            _withdraw: withdraw,
        };
        self.open.insert(id.clone(), open);
        let events = self.call.events.clone();
        self.answering.push(Box::pin(async move {
            let answered = tokio::select! {
                answered = events.ask(None, question.clone()) => answered,
                _ = withdrawn => return None,
            };
            Some((id, answered, question))
        }));
    }

    /// Gives the server its answers, now that the call's further questions can be told apart.
    async fn give_answers(&mut self) {
        while let Some((id, outcome)) = self.answers.pop_front() {
            self.session.rpc.respond(id, outcome).await;
        }
        if let Some(lane) = self.lane.as_mut().filter(|_| !self.open.is_empty()) {
            lane.wait();
        }
    }

    /// Takes note of an answer. A question that was withdrawn needs none.
    fn answered(
        &mut self,
        answered: Option<(Id, Result<Raw, AskError>, plexus_mcp_core::Question)>,
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

impl Drop for Following<'_> {
    /// Where questions do not say which call they belong to, one that is still open may be another
    /// call's of the same caller: it is put to that one, or else refused, lest the server wait for ever.
    fn drop(&mut self) {
        if self.lane.take().is_none() {
            return;
        }
        self.in_flight.give_up();
        let rpc = &self.session.rpc;
        for (id, outcome) in self.answers.drain(..) {
            rpc.respond_now(id, outcome);
        }
        for (_, open) in self.open.drain() {
            rpc.ask_again(open.request);
        }
    }
}

/// The result of a call. If the call failed and a question was refused because the caller lacks a
/// capability, a stateless caller gets that as the error (META26-05).
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
        (answer, _) => Ok(hop_metadata::without_legacy_hop_metadata(answer?)),
    }
}

/// Waits until the call may ask more, where that has to be waited for.
async fn go_on(lane: &mut Option<Lane>) {
    if let Some(lane) = lane {
        lane.go_on().await;
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
