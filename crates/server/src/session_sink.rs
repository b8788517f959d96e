//! The outgoing channel of a session.

use std::sync::Arc;

use bytes::Bytes;

use crate::event_stream::EventStream;
use crate::writer::{LineSender, TrySendError};

/// A channel to one client.
#[derive(Debug, Clone)]
pub(crate) enum SessionSink {
    /// A pipe.
    Lines(LineSender),
    /// An HTTP response that stays open, or will be opened.
    Stream(Arc<EventStream>),
}

impl SessionSink {
    /// Sends a message that must arrive, and waits for room in the queue.
    pub(crate) async fn send(&self, message: Bytes) {
        match self {
            Self::Lines(lines) => {
                if lines.send(message).await.is_err() {
                    // The pipe's driver sees that it is closed, and ends.
                    tracing::debug!("the client is gone; dropped a message");
                }
            }
            Self::Stream(stream) => stream.push(message),
        }
    }

    /// Sends a message that may be dropped if the queue is full; never waits.
    pub(crate) fn offer(&self, message: Bytes) {
        match self {
            Self::Lines(lines) => {
                if let Err(TrySendError::Full) = lines.try_send(message) {
                    tracing::warn!("the client does not read; dropped a notification");
                }
            }
            Self::Stream(stream) => stream.offer(message),
        }
    }
}
