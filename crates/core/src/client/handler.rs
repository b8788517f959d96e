//! Answers to the questions that servers ask during a call.

use plexus_mcp_protocol::code;
use plexus_mcp_protocol::messages::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ListRootsResult, Root,
};
use plexus_mcp_wire::{Raw, RpcError};
use serde::Serialize;

use crate::call::Boxed;
use crate::event::{AskError, Question};

/// Answers the questions that servers ask a [`Client`](super::Client) during a call. The default
/// of every method refuses, so a handler implements only the methods for the capabilities that it
/// declares.
///
/// Dropping a returned future means that the server withdrew its question.
pub trait QuestionHandler: Send + Sync + 'static {
    /// The capabilities that the client declares. A question that needs another capability is
    /// refused before the handler sees it.
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::none()
    }

    /// `elicitation/create`: have the user fill in a form or visit a URL.
    fn elicit(&self, params: ElicitParams) -> Boxed<Result<ElicitResult, RpcError>> {
        drop(params);
        Box::pin(std::future::ready(Ok(ElicitResult::decline())))
    }

    /// `sampling/createMessage`: have a model write a message.
    fn sample(&self, params: CreateMessageParams) -> Boxed<Result<CreateMessageResult, RpcError>> {
        drop(params);
        Box::pin(std::future::ready(Err(unsupported())))
    }

    /// `roots/list`: the directories that may be worked on.
    fn list_roots(&self) -> Boxed<Result<Vec<Root>, RpcError>> {
        Box::pin(std::future::ready(Err(unsupported())))
    }
}

/// The handler of a client that has none.
#[derive(Debug)]
pub(super) struct RefuseQuestions;

impl QuestionHandler for RefuseQuestions {}

/// Puts a question to the handler.
pub(super) async fn answer(
    handler: &dyn QuestionHandler,
    question: &Question,
) -> Result<Raw, AskError> {
    match question {
        Question::Elicit(params) => {
            let params = params.decode().map_err(|error| malformed(&error))?;
            encoded(handler.elicit(params).await)
        }
        Question::Sample(params) => {
            let params = params.decode().map_err(|error| malformed(&error))?;
            encoded(handler.sample(params).await)
        }
        Question::Roots => {
            let roots = handler.list_roots().await;
            encoded(roots.map(|roots| ListRootsResult { roots }))
        }
    }
}

fn encoded<T: Serialize>(answer: Result<T, RpcError>) -> Result<Raw, AskError> {
    let answer = answer.map_err(AskError::Refused)?;
    Raw::encode(&answer).map_err(|error| AskError::Malformed(error.to_string()))
}

fn malformed(error: &serde_json::Error) -> AskError {
    AskError::Unaskable(error.to_string())
}

fn unsupported() -> RpcError {
    RpcError {
        code: code::METHOD_NOT_FOUND,
        message: "the client has no handler for this question".to_owned(),
        data: None,
    }
}
