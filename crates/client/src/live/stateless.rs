//! Calls of a stateless server.

use std::time::Duration;

use futures_util::future::join_all;
use plexus_mcp::{Fault, code, method};
use plexus_service::{Call, Section};
use plexus_wire::{Object, Raw};
use tokio::time::Instant;

use super::{CallFailure, Live, Session, ask, caller, late};
use crate::link::Headers;
use crate::rpc::{Next, RpcFailure, Traits, Update};
use crate::stamp::{self, StatelessMeta};

/// The most rounds of questions in one call.
const MAX_ROUNDS: u32 = 10;
/// How long the first retry without a question waits; the next ones twice as long each.
const PAUSE: Duration = Duration::from_millis(50);

/// Carries out a call, with as many rounds as the server's questions take. Dropping the future
/// cancels it at the server.
pub(super) async fn call(live: &Live, session: &Session, call: &Call) -> Result<Raw, CallFailure> {
    let end = Instant::now() + live.definition.timeouts.call_total;
    let mut params = call.params.clone();
    let mut relisted = false;
    let mut pause = PAUSE;
    for round_number in 0..=MAX_ROUNDS {
        let result = match round(live, session, call, &params, end).await? {
            Ok(result) => result,
            // HDR26-15: our idea of the tool's schema may be old.
            Err(RpcFailure::Error(error)) if error.code == code::HEADER_MISMATCH && !relisted => {
                relisted = true;
                Box::pin(live.list(&[Section::Tools])).await;
                continue;
            }
            // The server no longer speaks the version it agreed on; it carried out nothing.
            Err(RpcFailure::Error(error))
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION && round_number == 0 =>
            {
                return Err(CallFailure::SessionLost);
            }
            Err(failure) => return Err(failure.into()),
        };
        let object = Object::parse(&result)
            .map_err(|error| Fault::Internal(format!("the server's result: {error}")))?;
        match object.text("resultType").as_deref() {
            // BASE-13: no type means complete.
            None | Some("complete") => return Ok(stamp::of_no_hop(object)),
            Some("input_required") if method::may_ask(&call.method) => {
                let asked = object.contains("inputRequests");
                let asking = tokio::time::timeout_at(end, Box::pin(retry(call, &object)));
                params = asking.await.map_err(|_elapsed| late(&call.method))??;
                if !asked {
                    // State alone is a server's way to shed load.
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
            Some(other) => {
                return Err(Fault::Internal(format!("unsupported result type {other:?}")).into());
            }
        }
    }
    Err(Fault::Internal(format!("the server asked more than {MAX_ROUNDS} times")).into())
}

/// One request and its answer.
async fn round(
    live: &Live,
    session: &Session,
    call: &Call,
    params: &Object,
    end: Instant,
) -> Result<Result<Raw, RpcFailure>, Fault> {
    let revision = live.facts.revision;
    let number = session.rpc.reserve();
    let is_tool = &*call.method == method::TOOLS_CALL;
    let peer = call.peer();
    let own = StatelessMeta {
        revision,
        capabilities: &peer.capabilities,
        client_info: &live.client_info,
        log_level: call.events.log_level(),
    };
    let token = (call.events.wants_progress() || is_tool).then_some(number);
    let sent = stamp::stateless(params, token, own);
    let headers = if session.rpc.link().has_headers() {
        let catalogue = live.catalogue.borrow();
        let tool = params.text("name").filter(|_| is_tool);
        let tool = tool.and_then(|name| catalogue.list(Section::Tools).get(&name));
        stamp::mirrored(
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
        Traits::call(caller(call), &call.method, false),
    );
    let mut in_flight = match live.in_time(&call.method, request).await? {
        Ok(in_flight) => in_flight,
        Err(failure) => return Ok(Err(failure)),
    };
    loop {
        let deadline = live.deadline(&call.method, end);
        match in_flight.next_before(deadline).await {
            Some(Next::Answer(answer)) => return Ok(answer),
            Some(Next::Update(Update::Notification(notification))) => {
                Box::pin(live.relay(session, notification, &call.events)).await;
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
