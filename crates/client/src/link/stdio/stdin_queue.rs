//! The standard input of a child process: a bounded queue and the future that writes it.

use std::io;

use bytes::Bytes;
use plexus_mcp_core::wire_log::{Direction, log_message};
use tokio::io::{AsyncWriteExt, BufWriter, Interest};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::{MAX_QUEUED_MESSAGES, Outgoing, Room};
use crate::child::ChildInput;

/// Messages up to this size in total are written with one system call.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// The sending half: takes messages while the queue has room.
pub(super) struct StdinQueue {
    queue: mpsc::Sender<Bytes>,
    closing: CancellationToken,
}

impl StdinQueue {
    /// Messages are written to `input` while the returned future is polled. The future ends after
    /// [`close`](Self::close), or with an error when no process reads the input any more, whether
    /// anything is to be written or not.
    pub(super) fn new(input: ChildInput) -> (Self, impl Future<Output = io::Result<()>>) {
        let (sender, queue) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let closing = CancellationToken::new();
        let writing = write(input, queue, closing.clone());
        let input = Self {
            queue: sender,
            closing,
        };
        (input, writing)
    }

    /// Waits for room in the queue, in the order of the calls.
    pub(super) async fn room(&self) -> Room<'_> {
        match self.queue.reserve().await {
            Ok(permit) => Room::Queue(permit),
            Err(_closed) => Room::Unlimited,
        }
    }

    /// Queues a message. A message to a closed input is dropped: the reader of the child's output
    /// reports why the process ended.
    pub(super) fn send(room: Room<'_>, mut outgoing: Outgoing) {
        if let Room::Queue(permit) = room {
            log_message(Direction::ToServer, &outgoing.message);
            outgoing.message.extend_from_slice(b"\n");
            permit.send(outgoing.message.freeze());
        }
    }

    /// Closes the child's input after the messages that are queued.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }
}

async fn write(
    input: ChildInput,
    mut queue: mpsc::Receiver<Bytes>,
    closing: CancellationToken,
) -> io::Result<()> {
    let input = pipe::Sender::from_owned_fd(input.into_owned_fd()?)?;
    let mut input = BufWriter::with_capacity(WRITE_BUFFER_BYTES, input);
    let mut is_closing = false;
    loop {
        let next = if let Ok(message) = queue.try_recv() {
            Some(message)
        } else {
            input.flush().await?;
            tokio::select! {
                next = queue.recv() => next,
                // The reading end of the pipe was closed.
                ready = input.get_ref().ready(Interest::ERROR) => {
                    ready?;
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                () = closing.cancelled(), if !is_closing => {
                    is_closing = true;
                    queue.close();
                    continue;
                }
            }
        };
        let Some(message) = next else {
            return Ok(());
        };
        input.write_all(&message).await?;
    }
}
