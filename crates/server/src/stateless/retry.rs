//! The retry of a request that was answered with `input_required`.

use plexus_mcp_core::{Ask, Fault, Question};
use plexus_mcp_protocol::messages::{CreateMessageResult, ElicitResult, ListRootsResult};
use plexus_mcp_wire::{Kind, Object, Raw};

use crate::edge::Edge;
use crate::park::{ParkedCall, ParkedPosition};

/// Finds the parked call of `state`, and passes the answers in `params` to it.
/// Questions without an answer stay open (MRTR26-12), answers without a question are ignored
/// (MRTR26-11); a malformed answer changes nothing (MRTR26-10).
pub(super) fn resume(
    edge: &Edge,
    state: &Raw,
    params: &Object,
    binding: &[u8; 32],
) -> Result<(ParkedCall, ParkedPosition), Fault> {
    let state: String = state
        .decode()
        .map_err(|_not_a_string| Fault::InvalidState)?;
    let answers = answers(params)?;
    let (mut call, place) = edge.parking.take(&state, binding)?;
    for (key, ask) in &call.asks {
        if let Some(answer) = answers.get(key)
            && let Err(error) = check(&ask.question, answer)
        {
            let fault = Fault::InvalidParams(format!("inputResponses.{key}: {error}"));
            edge.parking.put_back(&edge.tracker, call, place)?;
            return Err(fault);
        }
    }
    let (answered, open): (Vec<_>, Vec<_>) = std::mem::take(&mut call.asks)
        .into_iter()
        .partition(|(key, _)| answers.contains(key));
    call.asks = open;
    for (key, ask) in answered {
        if let Some(answer) = answers.get(&key) {
            Ask::answer(ask, Ok(answer.clone()));
        }
    }
    Ok((call, place))
}

/// `inputResponses`; absent and `null` mean that nothing is answered yet.
pub(super) fn answers(params: &Object) -> Result<Object, Fault> {
    match params.get("inputResponses") {
        None => Ok(Object::new()),
        Some(answers) if answers.kind() == Kind::Null => Ok(Object::new()),
        Some(answers) => Object::parse(answers)
            .map_err(|error| Fault::InvalidParams(format!("inputResponses: {error}"))),
    }
}

/// Whether `answer` has the form that the protocol gives to answers of this question.
pub(super) fn check(question: &Question, answer: &Raw) -> Result<(), serde_json::Error> {
    match question {
        Question::Elicit(_) => {
            let ElicitResult { content, .. } = answer.decode()?;
            if content.is_some_and(|content| content.kind() != Kind::Object) {
                return Err(serde::de::Error::custom("content must be an object"));
            }
            Ok(())
        }
        Question::Sample(_) => answer.decode::<CreateMessageResult>().map(drop),
        Question::Roots => answer.decode::<ListRootsResult>().map(drop),
    }
}
