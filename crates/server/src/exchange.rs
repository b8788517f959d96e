//! What a request leads to: messages, the last of which is the answer.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

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
        let mut next = pin!(self.next());
        let mut cancelled = pin!(cancel.cancelled());
        poll_fn(|cx| {
            // What is cancelled says nothing more. To wait for that is needed only for what is not
            // ready.
            if cancel.is_cancelled() {
                return Poll::Ready(None);
            }
            match next.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending => cancelled.as_mut().poll(cx).map(|()| None),
            }
        })
        .await
    }
}
