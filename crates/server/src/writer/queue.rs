//! Lines that wait to be written.

use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::TrySendError;
use crate::lock::lock;

/// How many bytes may wait before there is no room; the message that fills it may be of any size.
const ROOM: usize = 2 * 1024 * 1024;

/// A message at least this long is written as it is; copying it would cost more than the call.
pub(super) const LARGE: usize = 32 * 1024;

/// How much memory is kept for lines to come.
const KEPT: usize = 64 * 1024;

/// Lines between those who send and the one who writes.
#[derive(Debug)]
pub(super) struct Queue {
    /// How many messages may wait.
    capacity: usize,
    state: Mutex<State>,
    /// Fires when there is room again, or nobody writes any more.
    room: Notify,
    /// Fires when nobody writes any more.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    waiting: Batch,
    /// How many bytes wait or are being written.
    bytes: usize,
    /// Who writes, if it waits for something to write.
    writer: Option<Waker>,
    /// Nobody sends any more.
    is_finished: bool,
    /// Nobody writes any more.
    is_closed: bool,
}

/// Lines in their order: the parts, then what is in `lines`.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) parts: Vec<Bytes>,
    pub(super) lines: BytesMut,
    messages: usize,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, message: &Bytes) {
        if message.len() < LARGE {
            self.lines.extend_from_slice(message);
        } else {
            self.parts.push(self.lines.split().freeze());
            self.parts.push(message.clone());
        }
        self.lines.extend_from_slice(b"\n");
        self.messages += 1;
        self.bytes += message.len() + 1;
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.lines.clear();
        if self.lines.capacity() > KEPT {
            self.lines = BytesMut::new();
        }
        self.messages = 0;
        self.bytes = 0;
    }
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            room: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Appends a message, if there is room.
    pub(super) fn push(&self, message: &Bytes) -> Result<(), TrySendError> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(TrySendError::Closed);
        }
        if self.is_full(&state) {
            return Err(TrySendError::Full);
        }
        state.bytes += message.len() + 1;
        state.waiting.push(message);
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(())
    }

    /// Waits until there is room, or nobody writes any more. Dropping the future has no effect.
    pub(super) async fn has_room(&self) {
        let room = self.room.notified();
        let mut room = std::pin::pin!(room);
        // Whatever is written from here on is heard of.
        room.as_mut().enable();
        let must_wait = {
            let state = lock(&self.state);
            !state.is_closed && self.is_full(&state)
        };
        if must_wait {
            room.await;
        }
    }

    fn is_full(&self, state: &State) -> bool {
        state.waiting.messages >= self.capacity || state.bytes >= ROOM
    }

    /// Takes all that waits into `batch`, which is empty; waits for something. `false` if nothing
    /// will come any more.
    pub(super) async fn take(&self, batch: &mut Batch) -> bool {
        poll_fn(|cx| self.poll_take(cx, batch)).await
    }

    fn poll_take(&self, cx: &Context<'_>, batch: &mut Batch) -> Poll<bool> {
        let mut state = lock(&self.state);
        if state.waiting.messages > 0 {
            std::mem::swap(&mut state.waiting, batch);
            drop(state);
            self.room.notify_waiters();
            return Poll::Ready(true);
        }
        if state.is_finished {
            return Poll::Ready(false);
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes note that `batch` is written, and empties it.
    pub(super) fn written(&self, batch: &mut Batch) {
        lock(&self.state).bytes -= batch.bytes;
        batch.clear();
        self.room.notify_waiters();
    }

    /// Nobody sends any more.
    pub(super) fn finish(&self) {
        let mut state = lock(&self.state);
        state.is_finished = true;
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Nobody writes any more.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.waiting = Batch::default();
        drop(state);
        self.closed.cancel();
        self.room.notify_waiters();
    }

    /// Completes when nobody writes any more. Dropping the future has no effect.
    pub(super) async fn is_closed(&self) {
        self.closed.cancelled().await;
    }
}
