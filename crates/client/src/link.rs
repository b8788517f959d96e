//! The ways to a server: messages go out, messages come in.

mod http;
mod sse;
mod stdio;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use plexus_wire::{DecodeError, Limits, Message};
use tokio::sync::oneshot;

pub(crate) use http::{HttpLink, Style, failed};
pub(crate) use sse::SseLink;
pub(crate) use stdio::StdioLink;

use crate::rpc::Board;
use crate::status::ProcessInfo;

/// How many messages may wait for whoever is to take them.
pub(crate) const QUEUE: usize = 256;

/// How much is kept to show of what was no message.
const SHOWN: usize = 200;

/// Headers that mirror a message, for stateless HTTP.
pub(crate) type Headers = Vec<(::http::HeaderName, ::http::HeaderValue)>;

/// The number of one of our requests.
pub(crate) type Number = i64;

/// A message on its way to the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: BytesMut,
    /// Set for requests.
    pub(crate) request: Option<Number>,
    /// How many requests wait for their answers, with this one; none for what is no request.
    pub(crate) waiting: usize,
    /// Dropped when the server has taken the message, or cannot.
    pub(crate) taken: Option<oneshot::Sender<()>>,
}

/// What comes from the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message. `of` is the request on whose own stream it came, where the transport has such.
    Message {
        message: Message,
        of: Option<Number>,
    },
    /// Nothing more will come for this request.
    Failed { request: Number, error: LinkError },
    /// Something that is no message.
    Junk(Junk),
    /// The connection is over.
    Closed(LinkError),
}

/// What a server sent instead of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Junk {
    /// Text that is no JSON, as servers print that log to their standard output.
    NotJson(String),
    /// JSON that is no JSON-RPC message.
    NotAMessage(String),
    /// More than the limit allows.
    TooLong,
}

/// Why a message could not be brought to the server, or an answer from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection ended.
    #[error("{0}")]
    Closed(String),
    /// The server wants credentials, or better ones.
    #[error("the server wants authorization (HTTP {status}){}", .reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    NeedsAuth {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header, which says how.
        challenge: Option<String>,
        /// Whether it would help if a user signed in.
        wants_user: bool,
        /// Why we have none that would do, if there was an attempt to get them.
        reason: Option<String>,
    },
    /// The server does not know our session any more; what was sent was not carried out.
    #[error("the server has forgotten the session")]
    SessionLost,
    /// The server answered with an HTTP error that is no answer of the protocol.
    #[error("the server answered with HTTP {status}{}", .text.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Http {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        text: Option<String>,
    },
    /// The server could not be reached; nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The exchange broke off; whether the request was carried out is unknown.
    #[error("{0}")]
    Broken(String),
    /// The server's answer makes no sense.
    #[error("{0}")]
    Nonsense(String),
}

/// A way to a server.
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
}

impl Link {
    /// Sends, if there is room; else gives the message back. Requests by HTTP go a way of their own.
    pub(crate) fn try_send(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        match self {
            Self::Stdio(link) => link.try_send(outgoing),
            Self::Http(link) => link.try_send(outgoing),
            Self::Sse(link) => {
                link.send(outgoing);
                Ok(())
            }
        }
    }

    /// Waits until there is room to send.
    pub(crate) async fn room(&self) {
        match self {
            Self::Stdio(link) => link.room().await,
            Self::Http(link) => link.room().await,
            Self::Sse(_) => {}
        }
    }

    /// Whether requests have headers beside them, which mirror them.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Whether the server must be told in a message that a request is given up.
    pub(crate) fn is_told_of_cancellation(&self) -> bool {
        match self {
            Self::Stdio(_) | Self::Sse(_) => true,
            Self::Http(link) => link.is_told_of_cancellation(),
        }
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        match self {
            Self::Stdio(link) => link.close().await,
            Self::Http(link) => link.close().await,
            Self::Sse(link) => link.close(),
        }
    }

    /// The server's process, if it is one of ours.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        match self {
            Self::Stdio(link) => link.process().await,
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// What the server's process last said on its standard error.
    pub(crate) fn last_words(&self) -> Vec<String> {
        match self {
            Self::Stdio(link) => link.last_words(),
            Self::Http(_) | Self::Sse(_) => Vec::new(),
        }
    }
}

/// Hands `take` what `bytes` hold: a message or several, or something that is none. `of` is the
/// request on whose stream they came.
pub(crate) fn decoded(
    bytes: &Bytes,
    limits: &Limits,
    of: Option<Number>,
    mut take: impl FnMut(Incoming),
) {
    let shown = || {
        String::from_utf8_lossy(bytes)
            .chars()
            .take(SHOWN)
            .collect::<String>()
    };
    let mut one = |message: Result<Message, plexus_wire::Malformed>| match message {
        Ok(message) => take(Incoming::Message { message, of }),
        Err(_) => take(Incoming::Junk(Junk::NotAMessage(shown()))),
    };
    match plexus_wire::decode(bytes.clone(), limits) {
        Ok(plexus_wire::Incoming::Single(message)) => one(message),
        Ok(plexus_wire::Incoming::Batch(messages)) => messages.into_iter().for_each(one),
        Err(DecodeError::TooLarge { .. }) => take(Incoming::Junk(Junk::TooLong)),
        Err(_) => take(Incoming::Junk(Junk::NotJson(shown()))),
    }
}

/// Where a link puts what comes in.
pub(crate) type Inbox = Arc<Board>;
