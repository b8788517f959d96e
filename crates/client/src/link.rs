//! The transports to a server.

mod http;
mod rejected;
mod sse;
mod stdio;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_protocol::Fault;
use plexus_mcp_wire::{Id, Limits, Malformed, Message, RpcError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

pub(crate) use http::{HttpLink, failed};
pub(crate) use sse::SseLink;
pub(crate) use stdio::StdioLink;

use crate::child::Grace;
use crate::rpc::PendingRequests;
use crate::status::ProcessInfo;

/// The capacity of a message queue.
pub(crate) const MAX_QUEUED_MESSAGES: usize = 256;

/// How much of an undecodable message is stored for display.
const UNDECODABLE_MAX_CHARS: usize = 200;

/// Headers that mirror a message, for stateless HTTP.
pub(crate) type Headers = Vec<(::http::HeaderName, ::http::HeaderValue)>;

/// The id of one of our requests.
pub(crate) type Number = i64;

/// A message to be sent to the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: BytesMut,
    /// The id of the message, if it is a request.
    pub(crate) request: Option<Number>,
    /// Acknowledgement: dropped when the message is queued (stdio), its POST is answered (HTTP), or it
    /// cannot be sent.
    pub(crate) taken: Option<oneshot::Sender<()>>,
}

/// An event from the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message. `of` is the request on whose own stream it came, where the transport has such.
    Message {
        message: Message,
        of: Option<Number>,
    },
    /// The request has failed: no response will be delivered.
    Failed { request: Number, error: LinkError },
    /// A request of the server that cannot be read, and the error to answer it with.
    Refused { id: Id, error: RpcError },
    /// Data that is not a message.
    UndecodableMessage(UndecodableMessage),
    /// The connection is over.
    Closed(LinkError),
}

/// Data that a server sent instead of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UndecodableMessage {
    /// Text that is not JSON, for example a log line on standard output.
    NotJson(String),
    /// JSON that is not a JSON-RPC message.
    NotAMessage(String),
    /// A message above the size limit.
    TooLong,
}

/// Why the transport of a request or its response failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection ended.
    #[error("{0}")]
    Closed(String),
    /// The server requires credentials, or other ones.
    #[error("the server wants authorization (HTTP {status}){}", .reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    NeedsAuth {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header, which describes how to authenticate.
        challenge: Option<String>,
        /// Whether it would help if a user signed in.
        wants_user: bool,
        /// Why no credentials could be obtained, if that was tried.
        reason: Option<String>,
    },
    /// No credentials could be obtained for now, for example because the authorization server cannot
    /// be reached. The server did not execute the request.
    #[error("{0}")]
    NoCredentials(String),
    /// The server does not know our session any more; what was sent was not carried out.
    #[error("the server has forgotten the session")]
    SessionLost,
    /// The server answered with an HTTP error that is no answer of the protocol.
    #[error("the server answered with HTTP {status}{}", .text.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    Http {
        /// The status.
        status: u16,
        /// The beginning of the response.
        text: Option<String>,
    },
    /// The server could not be reached; nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The exchange broke off; whether the request was carried out is unknown.
    #[error("{0}")]
    Broken(String),
    /// The server's answer is larger than [`Limits::max_bytes`], and was discarded.
    #[error("{}", Fault::ResponseTooLarge { size: *.size, limit: *.limit })]
    TooLarge {
        /// The size of the answer as far as it is known, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server's answer makes no sense.
    #[error("{0}")]
    InvalidAnswer(String),
}

/// Permission to send one message: backpressure from a server that does not read.
pub(crate) enum Room<'a> {
    /// A place in the queue of a child's standard input.
    Queue(mpsc::Permit<'a, Bytes>),
    /// One of the POST requests that a server may be taking at a time.
    Post(OwnedSemaphorePermit),
    /// The transport has no bound, or is closed.
    Unlimited,
}

/// A transport to a server.
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
}

impl Link {
    /// Waits until a message can be sent. Waiting callers are served in order.
    pub(crate) async fn room(&self) -> Room<'_> {
        match self {
            Self::Stdio(link) => link.room().await,
            Self::Http(link) => link.room().await,
            Self::Sse(link) => link.room().await,
        }
    }

    /// Sends a message that there is room for. Requests by HTTP are sent with
    /// [`HttpLink::exchange`] instead.
    pub(crate) fn send(&self, room: Room<'_>, outgoing: Outgoing) {
        match self {
            Self::Stdio(_) => StdioLink::send(room, outgoing),
            Self::Http(link) => link.send(room, outgoing),
            Self::Sse(link) => link.send(room, outgoing),
        }
    }

    /// Whether requests have headers that mirror their bodies.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Whether the cancellation of a request must be sent as a notification.
    pub(crate) fn is_told_of_cancellation(&self) -> bool {
        match self {
            Self::Stdio(_) | Self::Sse(_) => true,
            Self::Http(link) => link.is_told_of_cancellation(),
        }
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self, grace: Grace) {
        match self {
            Self::Stdio(link) => link.close(grace).await,
            Self::Http(link) => link.close(grace).await,
            Self::Sse(link) => link.close(),
        }
    }

    /// The server's process, if it is a child process.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        match self {
            Self::Stdio(link) => link.process().await,
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// The last lines of the process's standard error.
    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        match self {
            Self::Stdio(link) => link.stderr_tail(),
            Self::Http(_) | Self::Sse(_) => Vec::new(),
        }
    }
}

/// Decodes `bytes` and passes each message, or the decoding error, to `take`. `of` is the request on
/// whose stream the bytes came.
pub(crate) fn decoded(
    bytes: &Bytes,
    limits: &Limits,
    of: Option<Number>,
    mut take: impl FnMut(Incoming),
) {
    log_message(Direction::FromServer, bytes);
    let shown = || {
        String::from_utf8_lossy(bytes)
            .chars()
            .take(UNDECODABLE_MAX_CHARS)
            .collect::<String>()
    };
    let mut one = |message: Result<Message, Malformed>| match message {
        Ok(message) => take(Incoming::Message { message, of }),
        Err(malformed) => {
            rejected::malformed(bytes, &malformed, &mut take);
            take(Incoming::UndecodableMessage(
                UndecodableMessage::NotAMessage(shown()),
            ));
        }
    };
    match plexus_mcp_wire::decode(bytes.clone(), limits) {
        Ok(plexus_mcp_wire::Incoming::Single(message)) => one(message),
        Ok(plexus_mcp_wire::Incoming::Batch(messages)) => messages.into_iter().for_each(one),
        Err(error) => rejected::undecodable(bytes, &error, shown, take),
    }
}

/// Where a transport delivers incoming events.
pub(crate) type Inbox = Arc<PendingRequests>;
