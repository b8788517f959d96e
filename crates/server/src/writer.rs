//! Messages as lines on one output, written by one task.
//!
//! Every message goes through one queue to one writer, so lines of different tasks cannot
//! interleave. The queue is the bytes to be written: the writer takes all there are and gives them
//! to the system in one call.

mod queue;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use queue::{Batch, Queue};

/// The task that writes, seen by whoever started it.
#[derive(Debug)]
pub(crate) struct LineWriter {
    task: JoinHandle<io::Result<()>>,
}

/// Queues messages for the writer. Cheap to clone; the writer ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct LineSender {
    end: Arc<SendingEnd>,
}

/// The writer has ended: the output is closed or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the output is closed")]
pub(crate) struct Closed;

/// Why a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum TrySendError {
    /// The reader is slower than we are, and the queue has no room.
    #[error("the output queue is full")]
    Full,
    /// The writer has ended.
    #[error("the output is closed")]
    Closed,
}

impl LineWriter {
    /// Starts a writer on `tracker` whose queue holds `capacity` messages (at least one), and no
    /// more than a few megabytes.
    ///
    /// It ends once every sender is dropped and all that was queued is written, or at the first
    /// write that fails; what is queued then is lost.
    pub(crate) fn spawn<W>(tracker: &TaskTracker, output: W, capacity: usize) -> (LineSender, Self)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let queue = Arc::new(Queue::new(capacity.max(1)));
        let task = tracker.spawn(write(output, ReceivingEnd(Arc::clone(&queue))));
        let end = Arc::new(SendingEnd(queue));
        (LineSender { end }, Self { task })
    }

    /// Waits for the writer to end. Dropping this future leaves the writer running.
    pub(crate) async fn finished(self) -> io::Result<()> {
        self.task.await?
    }
}

impl LineSender {
    /// Queues a message, waiting for room: a slow reader slows down its callers.
    ///
    /// Dropping this future before it completes leaves the message unsent.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let message = on_one_line(message);
        loop {
            match self.end.0.push(&message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed) => return Err(Closed),
                Err(TrySendError::Full) => self.end.0.has_room().await,
            }
        }
    }

    /// Queues a message if there is room now. For what may be dropped under load.
    pub(crate) fn try_send(&self, message: Bytes) -> Result<(), TrySendError> {
        self.end.0.push(&on_one_line(message))
    }

    /// Completes when the writer has ended. Dropping this future has no effect.
    pub(crate) async fn closed(&self) {
        self.end.0.is_closed().await;
    }
}

/// What all senders share.
#[derive(Debug)]
struct SendingEnd(Arc<Queue>);

impl Drop for SendingEnd {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// What the writer has.
struct ReceivingEnd(Arc<Queue>);

impl Drop for ReceivingEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn write<W>(mut output: W, queued: ReceivingEnd) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut batch = Batch::default();
    while queued.0.take(&mut batch).await {
        for part in &batch.parts {
            output.write_all(part).await?;
        }
        output.write_all(&batch.lines).await?;
        output.flush().await?;
        queued.0.written(&mut batch);
    }
    output.shutdown().await
}

/// The message without line breaks.
///
/// A message is JSON, in which a raw line break can only be white space between tokens; one that
/// is passed on as it came may be laid out over several lines (S003-31).
fn on_one_line(message: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    let broken = |byte: u8| matches!(byte, b'\n' | b'\r');
    let joined = message
        .iter()
        .map(|&byte| if broken(byte) { b' ' } else { byte });
    joined.collect()
}

#[cfg(test)]
mod tests;
