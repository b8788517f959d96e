//! Newline-delimited messages on one output, written by one task.
//!
//! All messages go through one bounded queue to one writer task, so lines of different tasks cannot
//! interleave. The writer joins the messages that are queued into one write.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use plexus_mcp_core::wire_log::{Direction, log_message};
use thiserror::Error;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::error::TrySendError as ChannelError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Bytes that may be queued or in a write that is in progress. A longer message waits for an empty
/// queue.
const MAX_QUEUED_BYTES: u32 = 2 * 1024 * 1024;

/// The writer joins queued messages up to this size into one write. A message that is longer is
/// written by itself.
const MAX_JOINED_BYTES: usize = 64 * 1024;

/// Handle of the writer task.
#[derive(Debug)]
pub(crate) struct LineWriter {
    task: JoinHandle<io::Result<()>>,
}

/// Queues messages for the writer. Cheap to clone; the writer ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct LineSender {
    queue: mpsc::Sender<QueuedLine>,
    room: Arc<Semaphore>,
}

/// A message and its share of [`MAX_QUEUED_BYTES`], which is free again when this is dropped.
#[derive(Debug)]
struct QueuedLine {
    message: Bytes,
    _room: OwnedSemaphorePermit,
}

/// The writer has ended: the output is closed or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the output is closed")]
pub(crate) struct Closed;

/// Why a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum TrySendError {
    /// The queue has no room: the reader of the output is too slow.
    #[error("the output queue is full")]
    Full,
    /// The writer has ended.
    #[error("the output is closed")]
    Closed,
}

impl LineWriter {
    /// Starts a writer on `tracker` whose queue holds `capacity` messages (at least one), and no
    /// more than [`MAX_QUEUED_BYTES`].
    ///
    /// It ends once every sender is dropped and all queued messages are written, or at the first
    /// write that fails; messages that are queued then are lost.
    pub(crate) fn spawn<W>(tracker: &TaskTracker, output: W, capacity: usize) -> (LineSender, Self)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (queue, lines) = mpsc::channel(capacity.max(1));
        let room = Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize));
        let task = tracker.spawn(write(output, lines));
        (LineSender { queue, room }, Self { task })
    }

    /// Waits for the writer to end. Dropping this future leaves the writer running.
    pub(crate) async fn finished(self) -> io::Result<()> {
        self.task.await?
    }
}

impl LineSender {
    /// Queues a message and waits for room: a slow reader slows down its callers (backpressure).
    ///
    /// Dropping this future before it completes leaves the message unsent.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let message = on_one_line(message);
        let room = Arc::clone(&self.room);
        // The permits of queued messages are released when the writer ends, so this cannot hang.
        let permit = room.acquire_many_owned(size(&message)).await;
        let line = QueuedLine {
            message,
            _room: permit.map_err(|_closed| Closed)?,
        };
        self.queue.send(line).await.map_err(|_line| Closed)
    }

    /// Queues a message if there is room now. For messages that may be dropped under load.
    pub(crate) fn try_send(&self, message: Bytes) -> Result<(), TrySendError> {
        if self.queue.is_closed() {
            return Err(TrySendError::Closed);
        }
        let message = on_one_line(message);
        let permit = Arc::clone(&self.room).try_acquire_many_owned(size(&message));
        let line = QueuedLine {
            message,
            _room: permit.map_err(|_no_permits| TrySendError::Full)?,
        };
        self.queue.try_send(line).map_err(|error| match error {
            ChannelError::Full(_) => TrySendError::Full,
            ChannelError::Closed(_) => TrySendError::Closed,
        })
    }

    /// Completes when the writer has ended. Dropping this future has no effect.
    pub(crate) async fn closed(&self) {
        self.queue.closed().await;
    }
}

fn size(message: &Bytes) -> u32 {
    u32::try_from(message.len() + 1).map_or(MAX_QUEUED_BYTES, |size| size.min(MAX_QUEUED_BYTES))
}

async fn write<W>(mut output: W, mut lines: mpsc::Receiver<QueuedLine>) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut batch = Vec::new();
    let mut joined = BytesMut::new();
    while lines.recv_many(&mut batch, lines.max_capacity()).await > 0 {
        for line in &batch {
            if joined.len() + line.message.len() > MAX_JOINED_BYTES {
                output.write_all(&joined).await?;
                joined.clear();
            }
            if line.message.len() > MAX_JOINED_BYTES {
                output.write_all(&line.message).await?;
            } else {
                joined.extend_from_slice(&line.message);
            }
            joined.extend_from_slice(b"\n");
        }
        output.write_all(&joined).await?;
        output.flush().await?;
        joined.clear();
        batch.clear();
    }
    output.shutdown().await
}

/// The message without line breaks.
///
/// A message is JSON, in which a raw line break can only be white space between tokens; one that
/// is passed on as it came may be laid out over several lines (S003-31).
fn on_one_line(message: Bytes) -> Bytes {
    log_message(Direction::ToClient, &message);
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
