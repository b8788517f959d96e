use std::fmt;
use std::ops::Deref;

use crate::object::Member;
use crate::{Id, Object, ObjectError, Raw};

/// One JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON-RPC 2.0 has these three messages"
)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is an answer.
    Response(Response),
}

/// A call that wants a [`Response`] with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the caller; echoed in the response.
    pub id: Id,
    /// What is called.
    pub method: Box<str>,
    /// An object or an array; `null` was read as absent.
    pub params: Option<Params>,
}

/// The parameters of a [`Request`].
///
/// Where its members are was seen when the message was read; nobody has to look for them again.
#[derive(Clone)]
pub struct Params {
    raw: Raw,
    /// None if they have not been looked for.
    members: Option<Vec<Member>>,
}

impl Params {
    pub(crate) fn with_members(raw: Raw, members: Vec<Member>) -> Self {
        let members = Some(members);
        Self { raw, members }
    }

    /// The parameters as they arrived.
    pub fn into_raw(self) -> Raw {
        self.raw
    }

    /// The members of the object that they are.
    ///
    /// # Errors
    /// They are no object, or a key has no one meaning.
    pub fn into_object(self) -> Result<Object, ObjectError> {
        match self.members {
            Some(members) => Object::of(self.raw, members),
            None => Object::parse(&self.raw),
        }
    }
}

impl From<Raw> for Params {
    fn from(raw: Raw) -> Self {
        let members = None;
        Self { raw, members }
    }
}

impl Deref for Params {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Params {}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What is told.
    pub method: Box<str>,
    /// An object or an array; `null` was read as absent.
    pub params: Option<Raw>,
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request; none only in an error about a request whose id could not be read.
    pub id: Option<Id>,
    /// The result, or why there is none.
    pub outcome: Result<Raw, RpcError>,
}

/// The error object of a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// What kind of error it is, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// More about it, in a form the code defines.
    pub data: Option<Raw>,
}

/// An element that is JSON but no JSON-RPC message; answered with -32600.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// The element's id, when it could be read.
    pub id: Option<Id>,
    /// What is wrong with the element.
    pub reason: Flaw,
}

/// Why an element is no JSON-RPC message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Only objects are messages.
    #[error("a message must be an object")]
    NotAnObject,
    /// A member that JSON-RPC defines is there twice.
    #[error("a member of the message is repeated")]
    RepeatedMember,
    /// The version is missing or another one.
    #[error("jsonrpc must be the string \"2.0\"")]
    Version,
    /// A call with an id that is null.
    #[error("id must not be null")]
    NullId,
    /// The id is a fraction, a boolean, an array or an object.
    #[error("id must be a string or an integer")]
    InvalidId,
    /// A result that answers no one.
    #[error("a result needs an id")]
    ResultWithoutId,
    /// The method is of another type.
    #[error("method must be a string")]
    InvalidMethod,
    /// The parameters are a scalar.
    #[error("params must be an object or an array")]
    InvalidParams,
    /// A call and an answer in one.
    #[error("a message with a method must not have a result or an error")]
    MethodAndOutcome,
    /// A success and a failure in one.
    #[error("a response must not have both a result and an error")]
    ResultAndError,
    /// Neither a call nor an answer.
    #[error("a message needs a method, a result or an error")]
    NoMethodOrOutcome,
    /// The error object lacks its code or its message, or has a member twice.
    #[error("error must be an object with an integer code and a string message")]
    InvalidError,
}
