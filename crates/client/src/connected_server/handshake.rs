//! Calls to a server of the handshake era.

use std::collections::{HashMap, VecDeque};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use plexus_mcp_core::{AskError, Boxed, Call, Question};
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
/// The most times that a call is sent again after URL elicitations.
const MAX_VISIT_ROUNDS: usize = 10;

/// Executes a call. Dropping the future cancels it at the server.
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
        let error = match attempt(server, session, call, end).await {
            // The server did not execute the call, so it can be sent again (TRANSLATION §5.5).
            Err(CallFailure::Fault(Fault::Upstream(error))) if requires_visit(call, &error) => {
                error
            }
            outcome => return outcome,
        };
        let visiting = Box::pin(visit::required(session, call, error));
        let visited = tokio::time::timeout_at(end, visiting).await;
        if let Some(result) = visited.map_err(|_elapsed| late(&call.method))?? {
            return Ok(result);
        }
    }
    // The user is not asked to visit pages after which the call would not be sent again.
    match attempt(server, session, call, end).await {
        Err(CallFailure::Fault(Fault::Upstream(error))) if requires_visit(call, &error) => {
            let text =
                format!("the server wanted pages visited more than {MAX_VISIT_ROUNDS} times");
            Err(Fault::Internal(text).into())
        }
        outcome => outcome,
    }
}

/// Whether the user must visit pages before the call can be executed.
fn requires_visit(call: &Call, error: &RpcError) -> bool {
    error.code == code::URL_ELICITATION_REQUIRED && method::allows_input_required(&call.method)
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
        Some(server.in_time(&call.method, lane).await?)
    } else {
        None
    };
    let number = session.rpc.reserve();
    // Progress extends the timeout, so a tool call always requests it.
    let wants_progress = call.events.wants_progress() || &*call.method == method::TOOLS_CALL;
    let token = wants_progress.then_some(number);
    let params = hop_metadata::handshake(&call.method, &call.params, token);
    let traits = Traits::call(caller, &call.peer().principal, &call.method);
    let rpc = &session.rpc;
    let request = rpc.request_as(number, &call.method, &params, Headers::new(), traits);
    let mut in_flight = server.in_time(&call.method, request).await??;
    let deadline = server.deadline(&call.method, end);
    match in_flight.next_before(deadline).await {
        // Most servers send no message before the response.
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
                lacking: None,
                lane,
            };
            // The call total also bounds the time for which a server does not take an answer.
            let finished = tokio::time::timeout_at(end, Box::pin(following.finish(first, end)));
            finished.await.map_err(|_elapsed| late(&call.method))?
        }
        None => Err(late(&call.method).into()),
    }
}

/// An answer that is awaited, with the question and the id of the request to send it to.
type Answering = Boxed<Option<(Id, Result<Raw, AskError>, Question)>>;

/// A question that the caller was asked. Dropping it withdraws the question from the caller.
struct OpenQuestion {
    /// As the server put it.
    request: Request,
    _withdraw: oneshot::Sender<()>,
}

/// A call in flight, after its first message.
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
    /// The missing capability of the caller that a question needed.
    lacking: Option<ClientCapability>,
    /// Set where questions do not say which call they belong to.
    ///
    /// Released last, by the order of the fields: while the request is neither answered nor given
    /// up, a question of it would otherwise go to the call in another lane.
    lane: Option<Lane>,
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
                        // While the call was parked, its future was not polled, so answers may be
                        // ready now.
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

    /// Whether an answer can be sent, or all open questions were withdrawn.
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
        if matches!(question, Question::Roots)
            && let Some(roots) = self.session.roots_of(&self.call.peer().principal)
        {
            rpc.respond(request.id, Ok(roots)).await;
            return;
        }
        let capability = question.needs();
        if !self.call.peer().supports(capability) {
            // The refusal is known, so it does not wait for the lane.
            self.lacking = Some(capability);
            let error = Err(AskError::Unsupported(capability));
            let outcome = self.outcome(&question, error);
            rpc.respond(request.id, outcome).await;
            return;
        }
        // The answer may take long, and a parked call is not even polled.
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

    /// Sends the answers, now that further questions of the call can be attributed again.
    async fn give_answers(&mut self) {
        while let Some((id, outcome)) = self.answers.pop_front() {
            self.session.rpc.respond(id, outcome).await;
        }
        if let Some(lane) = self.lane.as_mut().filter(|_| !self.open.is_empty()) {
            lane.wait();
        }
    }

    /// Queues an answer to be sent. The answer to a withdrawn question is dropped.
    fn answered(&mut self, answered: Option<(Id, Result<Raw, AskError>, Question)>) {
        let Some((id, answered, question)) = answered else {
            return;
        };
        if self.open.remove(&id).is_none() {
            return;
        }
        let outcome = self.outcome(&question, answered);
        self.answers.push_back((id, outcome));
    }

    /// The response to a question, in the form of the server's revision.
    fn outcome(
        &self,
        question: &Question,
        answered: Result<Raw, AskError>,
    ) -> Result<Raw, RpcError> {
        let features = self.session.revision.features();
        ask::answer(question, answered, self.call.peer(), features)
    }
}

impl Drop for Following<'_> {
    /// Sends the answers that are known, and dispatches open questions again: the server may still
    /// wait for them, even if the call was cancelled.
    ///
    /// The lane is released afterwards, as a field: while the call is neither in its lane nor known
    /// to be given up, a question for it would seem to belong to another call.
    fn drop(&mut self) {
        self.in_flight.give_up();
        for (id, outcome) in self.answers.drain(..) {
            self.session.rpc.respond_now(id, outcome);
        }
        for (_, open) in self.open.drain() {
            self.in_flight.ask_again(open.request);
        }
    }
}

/// The result of a call. If the call failed after a question was refused for a missing capability of
/// the caller, the error of a stateless caller names that capability (META26-05).
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

/// Waits for the lane, if there is one.
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
