//! Questions of a server, and their answers.

use plexus_mcp::messages::{ElicitResult, ListRootsResult};
use plexus_mcp::{code, method};
use plexus_service::{AskError, Question};
use plexus_wire::{Raw, Request, RpcError};

use super::Live;

/// The question that a request of the server puts; `None` if it puts none that we know.
pub(super) fn question(method: &str, params: Option<Raw>) -> Option<Question> {
    match method {
        method::ELICIT => Some(Question::Elicit(params.unwrap_or_else(Raw::empty_object))),
        method::SAMPLE => Some(Question::Sample(params.unwrap_or_else(Raw::empty_object))),
        method::ROOTS_LIST => Some(Question::Roots),
        _ => None,
    }
}

/// What a legacy server is told when its question has no answer (TRANSLATION §5.4.5, §5.4.14).
pub(super) fn answer(question: &Question, error: AskError) -> Result<Raw, RpcError> {
    match (question, error) {
        (_, AskError::Refused(error)) => Err(error),
        (_, AskError::Unsupported(capability)) => Err(RpcError {
            code: code::METHOD_NOT_FOUND,
            message: format!("the client did not declare {}", capability.as_str()),
            data: None,
        }),
        (Question::Elicit(_), _) => Ok(ElicitResult::cancel().to_raw()),
        (Question::Roots, _) => Ok(ListRootsResult { roots: Vec::new() }.to_raw()),
        (Question::Sample(_), error) => Err(RpcError {
            code: code::USER_REJECTED,
            message: error.to_string(),
            data: None,
        }),
    }
}

/// What a stateless server is given in place of an answer; a refused sampling has none.
pub(super) fn substitute(question: &Question, error: AskError) -> Result<Raw, AskError> {
    match question {
        Question::Elicit(_) => Ok(ElicitResult::cancel().to_raw()),
        Question::Roots => Ok(ListRootsResult { roots: Vec::new() }.to_raw()),
        Question::Sample(_) => Err(error),
    }
}

/// A question outside of any call has nobody to answer it (SAMP-13). Roots are none then, which is
/// an answer that every server understands.
pub(super) async fn refuse_stray(live: &Live, request: Request) {
    let outcome = match &*request.method {
        method::ROOTS_LIST => Ok(ListRootsResult { roots: Vec::new() }.to_raw()),
        method::ELICIT | method::SAMPLE => Err(RpcError {
            code: code::INVALID_PARAMS,
            message: "the request belongs to no call of the client".to_owned(),
            data: None,
        }),
        other => Err(unknown(other)),
    };
    live.rpc.respond(request.id, outcome).await;
}

pub(super) fn unknown(method: &str) -> RpcError {
    RpcError {
        code: code::METHOD_NOT_FOUND,
        message: format!("method not found: {method}"),
        data: None,
    }
}

pub(super) fn too_many() -> RpcError {
    RpcError {
        code: code::INTERNAL_ERROR,
        message: "too many questions at once".to_owned(),
        data: None,
    }
}
