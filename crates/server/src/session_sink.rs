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
        self.offer_progress(message, None);
    }

    /// The same for a message about the progress of a request, if there is one.
    pub(crate) fn offer_progress(&self, message: Bytes, progress_of: Option<u64>) {
        match self {
            Self::Lines(lines) => offer_line(lines, message),
            Self::Stream(stream) => stream.offer_progress(message, progress_of),
        }
    }

    /// The same for a notification of a change: a stream coalesces it with an equal one that is unread.
    pub(crate) fn offer_change(&self, message: Bytes) {
        match self {
            Self::Lines(lines) => offer_line(lines, message),
            Self::Stream(stream) => stream.offer_once(message),
        }
    }
}

fn offer_line(lines: &LineSender, message: Bytes) {
    if let Err(TrySendError::Full) = lines.try_send(message) {
        tracing::warn!("the client does not read; dropped a notification");
    }
}
