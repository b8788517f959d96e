//! Questions of a server, and their answers.

use plexus_mcp_core::{AskError, Peer, Question};
use plexus_mcp_protocol::convert::{raised_elicitation, raised_sampling, sampling_result};
use plexus_mcp_protocol::messages::{ClientCapability, ElicitResult, ListRootsResult};
use plexus_mcp_protocol::{Features, code, method};
use plexus_mcp_wire::{Raw, Request, RpcError};

use super::Session;

/// The question of a server's request; `None` for an unknown method.
pub(super) fn question(method: &str, params: Option<Raw>) -> Option<Question> {
    let params = || params.unwrap_or_else(Raw::empty_object);
    match method {
        method::ELICIT => Some(Question::Elicit(raised_elicitation(&params()))),
        method::SAMPLE => Some(Question::Sample(raised_sampling(&params()))),
        method::ROOTS_LIST => Some(Question::Roots),
        _ => None,
    }
}

/// The response to a handshake-era server, in the form of its revision.
pub(super) fn answer(
    question: &Question,
    answered: Result<Raw, AskError>,
    peer: &Peer,
    features: &Features,
) -> Result<Raw, RpcError> {
    match (question, answered) {
        (Question::Sample(_), Ok(answer)) => {
            sampling_result(&answer, features).map_err(|error| RpcError {
                code: code::INTERNAL_ERROR,
                message: format!("the client's model answered what cannot be told: {error}"),
                data: None,
            })
        }
        (_, Ok(answer)) => Ok(answer),
        (_, Err(error)) => unanswered(question, error, peer),
    }
}

/// The response to a handshake-era server whose question was not answered (TRANSLATION §5.4.5).
fn unanswered(question: &Question, error: AskError, peer: &Peer) -> Result<Raw, RpcError> {
    match (question, error) {
        (_, AskError::Refused(error)) => Err(error),
        (_, AskError::Unsupported(capability)) => Err(RpcError {
            // The client declared the capability, but not this variant of it.
            code: if is_variety(capability, peer) {
                code::INVALID_PARAMS
            } else {
                code::METHOD_NOT_FOUND
            },
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

/// Whether `capability` is a variant of a capability that the peer declared.
fn is_variety(capability: ClientCapability, peer: &Peer) -> bool {
    match capability {
        ClientCapability::ElicitationForm | ClientCapability::ElicitationUrl => {
            peer.capabilities.elicitation.is_some()
        }
        ClientCapability::SamplingTools | ClientCapability::SamplingContext => {
            peer.capabilities.sampling.is_some()
        }
        ClientCapability::Roots | ClientCapability::Sampling => false,
    }
}

/// The substitute for a missing answer to a stateless server; a sampling request has none.
pub(super) fn substitute(question: &Question, error: AskError) -> Result<Raw, AskError> {
    match question {
        Question::Elicit(_) => Ok(ElicitResult::cancel().to_raw()),
        Question::Roots => Ok(ListRootsResult { roots: Vec::new() }.to_raw()),
        Question::Sample(_) => Err(error),
    }
}

/// Refuses and logs a question outside of any call, because no caller can answer it (SAMP-13). A
/// roots request gets the roots that were fetched in advance if only one principal has called, else an
/// empty list.
pub(super) async fn refuse_stray(session: &Session, request: Request) {
    let no_roots = || ListRootsResult { roots: Vec::new() }.to_raw();
    let outcome = match &*request.method {
        method::ROOTS_LIST => Ok(session.roots_of_only_principal().unwrap_or_else(no_roots)),
        method::ELICIT | method::SAMPLE => {
            tracing::warn!(
                method = %request.method,
                "refused a question of the server: no call is in flight that it could belong to"
            );
            Err(RpcError {
                code: code::INVALID_PARAMS,
                message: "the request belongs to no call of the client".to_owned(),
                data: None,
            })
        }
        other => Err(unknown(other)),
    };
    session.rpc.respond(request.id, outcome).await;
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
