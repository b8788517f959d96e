use crate::{Id, Raw};

/// One JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON-RPC 2.0 has these three messages"
)]
pub enum Message {
    /// A call that expects a response.
    Request(Request),
    /// A call without a response.
    Notification(Notification),
    /// The response to a request.
    Response(Response),
}

/// A call that expects a [`Response`] with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the caller; echoed in the response.
    pub id: Id,
    /// The name of the method.
    pub method: Box<str>,
    /// An object or an array; `null` was read as absent.
    pub params: Option<Raw>,
}

/// A call without a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The name of the method.
    pub method: Box<str>,
    /// An object or an array; `null` was read as absent.
    pub params: Option<Raw>,
}

/// The response to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request; none only in an error about a request whose id could not be read.
    pub id: Option<Id>,
    /// The result or the error.
    pub outcome: Result<Raw, RpcError>,
}

/// The error object of a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The error code, for programs.
    pub code: i64,
    /// The error message, for people.
    pub message: String,
    /// Additional data; its form depends on the code.
    pub data: Option<Raw>,
}

/// JSON that is not a JSON-RPC message. The response is error -32600.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// The element's id, when it could be read.
    pub id: Option<Id>,
    /// Why it is malformed.
    pub reason: MalformedReason,
}

/// Why JSON is not a JSON-RPC message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedReason {
    /// Only objects are messages.
    #[error("a message must be an object")]
    NotAnObject,
    /// A member that JSON-RPC defines occurs twice.
    #[error("a member of the message is repeated")]
    RepeatedMember,
    /// The version is missing or not 2.0.
    #[error("jsonrpc must be the string \"2.0\"")]
    Version,
    /// A call with an id that is null.
    #[error("id must not be null")]
    NullId,
    /// The id is a fraction, a boolean, an array or an object.
    #[error("id must be a string or an integer")]
    InvalidId,
    /// A result without an id.
    #[error("a result needs an id")]
    ResultWithoutId,
    /// The method is not a string.
    #[error("method must be a string")]
    InvalidMethod,
    /// The parameters are neither object nor array.
    #[error("params must be an object or an array")]
    InvalidParams,
    /// Both a method and a result or error.
    #[error("a message with a method must not have a result or an error")]
    MethodAndOutcome,
    /// Both a result and an error.
    #[error("a response must not have both a result and an error")]
    ResultAndError,
    /// No method, result or error.
    #[error("a message needs a method, a result or an error")]
    NoMethodOrOutcome,
    /// The error object has no code or message, or a repeated member.
    #[error("error must be an object with an integer code and a string message")]
    InvalidError,
}
