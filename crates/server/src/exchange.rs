//! What a request leads to: messages, the last of which is the answer.

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::listen::Listen;
use crate::render::Answer;
use crate::session::{NativeCall, SessionCall};
use crate::stateless::StatelessCall;

/// One message of an exchange.
#[derive(Debug)]
pub(crate) enum Output {
    /// A notification, which can be done without; more follows.
    Notification(Bytes),
    /// A question, which must arrive; more follows.
    Question(Bytes),
    /// The answer; nothing follows.
    Answer(Answer),
}

/// A request being served, whatever its era and its transport. Runs only while it is polled;
/// dropping it abandons the request.
pub(crate) enum Exchange {
    /// Answered at once.
    Answered(Answer),
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
            () = cancel.cancelled() => None,
            output = self.next() => Some(output),
        }
    }
}
