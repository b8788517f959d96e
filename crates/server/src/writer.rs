//! Messages as lines on one output, written by one task.
//!
//! Every message goes through one queue to one writer, so lines of different tasks cannot
//! interleave. The writer takes all that is queued and gives it to the system in one call.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// The task that writes, seen by whoever started it.
#[derive(Debug)]
pub(crate) struct LineWriter {
    task: JoinHandle<io::Result<()>>,
}

/// Queues messages for the writer. Cheap to clone; the writer ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct LineSender {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

/// A message with the room that it takes until it is written.
#[derive(Debug)]
struct Queued {
    message: Bytes,
    _room: OwnedSemaphorePermit,
}

/// How many KiB may wait to be written. A larger message waits alone.
const ROOM: u32 = 2048;

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
        let (queue, messages) = mpsc::channel(capacity.max(1));
        let task = tracker.spawn(write(output, messages));
        let room = Arc::new(Semaphore::new(ROOM as usize));
        (LineSender { queue, room }, Self { task })
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
        match self.try_send(message.clone()) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed) => return Err(Closed),
            Err(TrySendError::Full) => {}
        }
        let room = Arc::clone(&self.room).acquire_many_owned(kibibytes(&message));
        let queued = tokio::select! {
            biased;
            room = room => Queued {
                message,
                _room: room.map_err(|_closed| Closed)?,
            },
            () = self.queue.closed() => return Err(Closed),
        };
        let sent = self.queue.send(queued).await;
        sent.map_err(|mpsc::error::SendError(_)| Closed)
    }

    /// Queues a message if there is room now. For what may be dropped under load.
    pub(crate) fn try_send(&self, message: Bytes) -> Result<(), TrySendError> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(kibibytes(&message));
        let room = room.map_err(|error| match error {
            TryAcquireError::NoPermits => TrySendError::Full,
            TryAcquireError::Closed => TrySendError::Closed,
        })?;
        let queued = Queued {
            message,
            _room: room,
        };
        self.queue.try_send(queued).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => TrySendError::Full,
            mpsc::error::TrySendError::Closed(_) => TrySendError::Closed,
        })
    }

    /// Completes when the writer has ended. Dropping this future has no effect.
    pub(crate) async fn closed(&self) {
        self.queue.closed().await;
    }
}

/// Messages taken from the queue at a time.
const BATCH: usize = 64;

/// A message at least this long is written as it is; copying it would cost more than the call.
const LARGE: usize = 32 * 1024;

async fn write<W>(mut output: W, mut messages: mpsc::Receiver<Queued>) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut batch = Vec::with_capacity(BATCH);
    let mut lines = BytesMut::new();
    while messages.recv_many(&mut batch, BATCH).await > 0 {
        for Queued { message, _room } in batch.drain(..) {
            let message = on_one_line(message);
            if message.len() < LARGE {
                lines.extend_from_slice(&message);
            } else {
                output.write_all_buf(&mut lines).await?;
                output.write_all(&message).await?;
            }
            lines.extend_from_slice(b"\n");
        }
        output.write_all_buf(&mut lines).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

/// How much room a message takes.
fn kibibytes(message: &Bytes) -> u32 {
    u32::try_from(message.len() / 1024).map_or(ROOM, |size| size.clamp(1, ROOM))
}

/// The message without line breaks.
///
/// A message is JSON, in which a raw line break can only be white space between tokens; one that
/// is passed on as it came may be laid out over several lines (S003-31).
fn on_one_line(message: Bytes) -> Bytes {
    if !message.contains(&b'\n') && !message.contains(&b'\r') {
        return message;
    }
    let mut line = BytesMut::from(message);
    for byte in line.iter_mut() {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.freeze()
}

#[cfg(test)]
mod tests;
