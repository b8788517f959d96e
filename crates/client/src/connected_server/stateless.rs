//! Calls to a server of the stateless era.

use std::time::Duration;

use futures_util::future::join_all;
use plexus_mcp_core::{Call, Section};
use plexus_mcp_protocol::{Fault, code, method};
use plexus_mcp_wire::{Object, Raw};
use tokio::time::Instant;

use super::{CallFailure, ConnectedServer, Session, ask, caller, late};
use crate::backoff::{self, Backoff};
use crate::error_text::brief;
use crate::hop_metadata::{self, StatelessMeta};
use crate::link::{Headers, LinkError};
use crate::rpc::{Next, RpcFailure, Traits, Update};

/// The most rounds of questions in one call.
const MAX_QUESTION_ROUNDS: u32 = 10;
/// The backoff before a retry for a result with a state but no questions, by which a server sheds
/// load.
const ROUND_BACKOFF_MIN: Duration = Duration::from_millis(50);
const ROUND_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Executes a call, with as many retries as the server's questions need. Dropping the future
/// cancels it at the server.
pub(super) async fn call(
    server: &ConnectedServer,
    session: &Session,
    call: &Call,
) -> Result<Raw, CallFailure> {
    let end = Instant::now() + server.definition.timeouts.call_total;
    let mut params = call.params.clone();
    let mut relisted = false;
    let mut has_answered = false;
    let mut backoff = Backoff::new(ROUND_BACKOFF_MIN, ROUND_BACKOFF_MAX);
    for round_number in 0..=MAX_QUESTION_ROUNDS {
        let result = match round(server, session, call, &params, end).await? {
            Ok(result) => result,
            // HDR26-15: the known schema of the tool may be outdated.
            Err(RpcFailure::Error(error)) if error.code == code::HEADER_MISMATCH && !relisted => {
                relisted = true;
                Box::pin(server.list(&[Section::Tools])).await;
                continue;
            }
            // The server no longer speaks the negotiated version; it did not execute the call.
            Err(RpcFailure::Error(error))
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION && round_number == 0 =>
            {
                return Err(CallFailure::Unusable(LinkError::SessionLost));
            }
            // The server has executed a part of the call, and the caller has answered questions. So
            // the call must not start again on another connection.
            Err(RpcFailure::Link(error)) if has_answered => {
                let reason = error.to_string();
                return Err(Fault::Internal(brief(&reason).to_owned()).into());
            }
            Err(failure) => return Err(failure.into()),
        };
        let object = Object::parse(&result)
            .map_err(|error| Fault::Internal(format!("the server's result: {error}")))?;
        match object.text("resultType").as_deref() {
            // BASE-13: no type means complete.
            None | Some("complete") => return Ok(hop_metadata::without_hop_metadata(object)),
            Some("input_required") if method::allows_input_required(&call.method) => {
                // The user is not asked what would not be sent.
                if round_number == MAX_QUESTION_ROUNDS {
                    break;
                }
                let asked = object.contains("inputRequests");
                let asking = tokio::time::timeout_at(end, Box::pin(retry(call, &object)));
                params = asking.await.map_err(|_elapsed| late(&call.method))??;
                has_answered = true;
                if !asked {
                    tokio::time::sleep(backoff.next_delay(backoff::random())).await;
                }
            }
            Some(other) => {
                return Err(Fault::Internal(format!("unsupported result type {other:?}")).into());
            }
        }
    }
    Err(Fault::Internal(format!(
        "the server asked more than {MAX_QUESTION_ROUNDS} times"
    ))
    .into())
}

/// One request and its answer.
async fn round(
    server: &ConnectedServer,
    session: &Session,
    call: &Call,
    params: &Object,
    end: Instant,
) -> Result<Result<Raw, RpcFailure>, Fault> {
    let revision = server.facts.revision;
    let number = session.rpc.reserve();
    let is_tool = &*call.method == method::TOOLS_CALL;
    let peer = call.peer();
    let own = StatelessMeta {
        revision,
        capabilities: &peer.capabilities,
        client_info: &server.client_info,
        log_level: call.events.log_level(),
    };
    let token = (call.events.wants_progress() || is_tool).then_some(number);
    let sent = hop_metadata::stateless(params, token, own);
    let headers = if session.rpc.link().has_headers() {
        let catalogue = server.catalogue.borrow();
        let tool = params.text("name").filter(|_| is_tool);
        let tool = tool.and_then(|name| catalogue.list(Section::Tools).get(&name));
        hop_metadata::mirrored_headers(
            revision,
            &call.method,
            params,
            tool.map(|tool| &tool.headers),
        )
    } else {
        Headers::new()
    };
    let request = session.rpc.request_as(
        number,
        &call.method,
        &sent,
        headers,
        Traits::call(caller(call), &call.peer().principal, &call.method),
    );
    let mut in_flight = match server.in_time(&call.method, request).await? {
        Ok(in_flight) => in_flight,
        Err(failure) => return Ok(Err(failure)),
    };
    loop {
        let deadline = server.deadline(&call.method, end);
        match in_flight.next_before(deadline).await {
            Some(Next::Answer(answer)) => return Ok(answer),
            Some(Next::Update(Update::Notification(notification))) => {
                Box::pin(server.relay(session, notification, &call.events)).await;
            }
            // BASE-16, BASE-17: a stateless server sends no requests, and is sent no answers.
            Some(Next::Update(Update::Request(_))) => {}
            None => return Err(late(&call.method)),
        }
    }
}

/// The parameters of the next round: the answers, and the state as it was given (MRTR26-14,
/// MRTR26-15).
async fn retry(call: &Call, result: &Object) -> Result<Object, Fault> {
    let invalid = |why: String| Fault::Internal(format!("the server's questions: {why}"));
    let mut params = call.params.clone();
    if let Some(requests) = result.get("inputRequests") {
        let requests = Object::parse(requests).map_err(|error| invalid(error.to_string()))?;
        let asking = requests
            .iter()
            .map(|(key, request)| answer(call, key, request));
        let mut responses = Object::new();
        for answered in join_all(asking).await {
            let (key, answer) = answered?;
            responses.set(key.to_owned(), answer);
        }
        params.set("inputResponses", responses.to_raw());
    }
    match result.get("requestState") {
        Some(state) => params.set("requestState", state.clone()),
        None => params.remove("requestState"),
    };
    Ok(params)
}

async fn answer<'k>(call: &Call, key: &'k str, request: &Raw) -> Result<(&'k str, Raw), Fault> {
    let invalid = |why: &str| Fault::Internal(format!("the server's question {key:?}: {why}"));
    let request = Object::parse(request).map_err(|error| invalid(&error.to_string()))?;
    let method: String = request
        .get("method")
        .and_then(|method| method.decode().ok())
        .ok_or_else(|| invalid("it has no method"))?;
    let question = ask::question(&method, request.get("params").cloned())
        .ok_or_else(|| invalid(&format!("{method} is no question")))?;
    let answered = call
        .events
        .ask(Some(key.to_owned()), question.clone())
        .await;
    let answer = answered
        .or_else(|error| ask::substitute(&question, error))
        .map_err(Fault::from)?;
    Ok((key, answer))
}
