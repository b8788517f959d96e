//! An exchange: the messages that answer one request, the last of which is the response.

use bytes::Bytes;
use plexus_mcp_core::Boxed;
use tokio_util::sync::CancellationToken;

use crate::encoder::EncodedResponse;
use crate::listen::Listen;
use crate::session::{NativeCall, SessionCall};
use crate::stateless::StatelessCall;

/// One message of an exchange.
#[derive(Debug)]
pub(crate) enum Output {
    /// A notification, which can be done without; more follows.
    Notification(Bytes),
    /// A notification about the progress of the request; more follows.
    Progress(Bytes),
    /// A question, which must arrive; more follows.
    Question(Bytes),
    /// The answer; nothing follows.
    Answer(EncodedResponse),
}

/// A request being served, of any era and over any transport. Runs only while it is polled;
/// dropping it abandons the request.
pub(crate) enum Exchange {
    /// Answered at once.
    Answered(EncodedResponse),
    /// Answered when the future completes: a list that waits for servers to start.
    Awaited(Boxed<EncodedResponse>),
    /// A call of a legacy session.
    Session(Box<SessionCall>),
    /// A native call, which is answered first: its last event is what ends it.
    Native(Box<NativeCall>),
    /// A stateless call.
    Stateless(Box<StatelessCall>),
    /// A stateless subscription.
    Listen(Box<Listen>),
}

impl Exchange {
    /// The next message. Must not be called again after an answer. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> Output {
        match self {
            Self::Answered(answer) => Output::Answer(answer.clone()),
            Self::Awaited(answer) => Output::Answer(answer.await),
            Self::Session(call) => call.next().await,
            Self::Native(call) => call.next().await,
            Self::Stateless(call) => call.next().await,
            Self::Listen(listen) => listen.next().await,
        }
    }

    /// The next message, unless `cancel` fires first.
    pub(crate) async fn next_unless(&mut self, cancel: &CancellationToken) -> Option<Output> {
        tokio::select! {
            biased;
            // A cancelled request sends nothing more.
            () = cancel.cancelled() => None,
            output = self.next() => Some(output),
        }
    }
}
