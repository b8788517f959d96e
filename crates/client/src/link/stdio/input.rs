//! The way into a child: whoever sends writes, as long as nobody has to wait for the child.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

use super::super::{Outgoing, QUEUE};
use crate::child::ChildInput;
use crate::crowd;
use crate::lock::lock;

/// How many messages are written at once.
const AT_ONCE: usize = 32;
/// From how many requests on that wait for their answers others are likely to follow at once.
const MANY: usize = 4;
/// Up to how many requests of many wait for one another, to be written together.
const TOGETHER: usize = 8;

pub(super) struct Input {
    state: Mutex<State>,
    /// Something is left to a task: the child does not read fast enough, or others may follow.
    left: Notify,
    /// There may be room again.
    room: Notify,
}

struct State {
    /// None when it is closed.
    input: Option<ChildInput>,
    /// What the child has not read yet.
    queue: VecDeque<Bytes>,
    /// The child does not read, and the task waits for it.
    is_blocked: bool,
    /// It is to be closed when that is written.
    is_ending: bool,
}

impl Input {
    pub(super) fn new(input: ChildInput) -> Self {
        Self {
            state: Mutex::new(State {
                input: Some(input),
                queue: VecDeque::new(),
                is_blocked: false,
                is_ending: false,
            }),
            left: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Sends, if there is room. What is closed has room for everything.
    pub(super) fn try_send(&self, mut outgoing: Outgoing) -> Result<(), Outgoing> {
        let mut state = lock(&self.state);
        if !state.has_room() {
            return Err(outgoing);
        }
        outgoing.message.extend_from_slice(b"\n");
        state.queue.push_back(outgoing.message.freeze());
        crowd::seen(outgoing.waiting);
        let queued = state.queue.len();
        let is_alone = queued == 1 && outgoing.waiting < MANY;
        if state.is_blocked {
            // What waits already is the task's.
        } else if is_alone || queued >= TOGETHER {
            let mut nobody = Context::from_waker(Waker::noop());
            state.is_blocked = state.poll_write(&mut nobody).is_pending();
            if state.is_blocked {
                self.left.notify_one();
            }
        } else if queued == 1 {
            self.left.notify_one();
        }
        Ok(())
    }

    /// Waits until there is room.
    pub(super) async fn room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if lock(&self.state).has_room() {
                return;
            }
            room.await;
        }
    }

    /// Writes what had to wait, until it is closed.
    pub(super) async fn write(self: Arc<Self>) {
        while !lock(&self.state).is_closed() {
            self.left.notified().await;
            // Who has something to send at this moment is let go first.
            tokio::task::yield_now().await;
            poll_fn(|cx| {
                let mut state = lock(&self.state);
                let written = state.poll_write(cx);
                state.is_blocked = written.is_pending();
                if state.has_room() {
                    self.room.notify_waiters();
                }
                written
            })
            .await;
        }
    }

    /// Ends the child's input after what waits for it.
    pub(super) fn close(&self) {
        lock(&self.state).is_ending = true;
        self.left.notify_one();
    }
}

impl State {
    fn is_closed(&self) -> bool {
        self.input.is_none()
    }

    fn has_room(&self) -> bool {
        self.queue.len() < QUEUE || self.is_closed()
    }

    /// Writes all that is queued, with as few system calls as possible.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.queue.is_empty() {
            if let Err(error) = ready!(self.poll_write_some(cx)) {
                // The reader sees the end of the process, and says why.
                tracing::debug!(%error, "the server's process takes no input any more");
                self.input = None;
            }
        }
        if self.is_ending {
            self.input = None;
        }
        Poll::Ready(())
    }

    fn poll_write_some(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(input) = &mut self.input else {
            self.queue.clear();
            return Poll::Ready(Ok(()));
        };
        let input = Pin::new(input);
        let written = match self.queue.make_contiguous() {
            [message] => ready!(input.poll_write(cx, message))?,
            messages => {
                let mut slices = [IoSlice::new(&[]); AT_ONCE];
                for (slice, message) in slices.iter_mut().zip(messages) {
                    *slice = IoSlice::new(message);
                }
                ready!(input.poll_write_vectored(cx, &slices))?
            }
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let mut written = written;
        while let Some(message) = self.queue.front_mut() {
            if message.len() > written {
                message.advance(written);
                break;
            }
            written -= message.len();
            self.queue.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}
