//! A resumable stream of messages to a legacy HTTP client. Messages that were sent are kept for a
//! while, so that a client that lost its connection resumes after the last message it received.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::encoder::EncodedResponse;
use crate::lock::lock;

/// The replay limits of a stream.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Replay {
    /// At most so many messages.
    pub messages: usize,
    /// At most so many bytes.
    pub bytes: usize,
    /// For so long after its end.
    pub time: Duration,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            messages: 256,
            bytes: 4 * 1024 * 1024,
            time: Duration::from_mins(5),
        }
    }
}

/// A stream may hold this many times its replay limits of messages that must not be dropped. Beyond
/// that it is closed.
const MAX_BACKLOG_FACTOR: usize = 16;

/// How long a sender waits for a client that does not read. After that it no longer waits for it.
const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// One stream. Messages are numbered from 1; 0 is the place before the first.
#[derive(Debug)]
pub(crate) struct EventStream {
    replay: Replay,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    last: u64,
    /// The newest message that was handed to a connection.
    taken: u64,
    /// Counts readers, so that a new one replaces the old.
    reader: u64,
    connected: bool,
    /// The client did not read for so long that it is no longer waited for.
    stalled: bool,
    /// The last message of the call is a request to the client, whose response the call waits for.
    asking: bool,
    /// Set when nothing more will come.
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    message: Bytes,
    /// May be dropped to make room.
    expendable: bool,
}

#[derive(Debug)]
struct Ended {
    at: Instant,
    /// The HTTP status of the answer, `None` if there is none.
    status: Option<plexus_mcp_protocol::HttpStatus>,
}

/// The first message of a stream.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The answer, and nothing else: no stream is needed.
    Answer(EncodedResponse),
    /// A message before the answer.
    Message,
    /// The end without an answer: the request was cancelled.
    Nothing,
}

impl EventStream {
    pub(crate) fn new(replay: Replay) -> Arc<Self> {
        Arc::new(Self {
            replay,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Adds a message that must arrive.
    pub(crate) fn push(&self, message: Bytes) {
        self.add(message, false);
    }

    /// Waits until the client has read most of the messages, so that no further message has to be
    /// dropped (backpressure, C57). Does not wait for a client that is disconnected, or that did not
    /// read for [`CLIENT_STALL_TIMEOUT`].
    pub(crate) async fn room(&self) {
        let read = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.has_room() {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(CLIENT_STALL_TIMEOUT, read)
            .await
            .is_err()
        {
            tracing::warn!("a client does not read its stream; it may miss what it is told");
            self.lock().stalled = true;
        }
    }

    /// Adds a message that may be dropped under load. A message that equals an unread one is coalesced
    /// with it, for example a second `list_changed`.
    pub(crate) fn offer(&self, message: Bytes) {
        let state = self.lock();
        let waits = |kept: &Kept| kept.number > state.taken && kept.message == message;
        if state.kept.iter().any(waits) {
            return;
        }
        drop(state);
        self.add(message, true);
    }

    pub(crate) fn set_asking(&self, asking: bool) {
        self.lock().asking = asking;
    }

    /// Adds the answer, if there is one, and ends the stream.
    pub(crate) fn end(&self, answer: Option<EncodedResponse>) {
        let status = answer.as_ref().map(|answer| answer.status);
        if let Some(answer) = answer {
            self.add(answer.message, false);
        }
        self.lock().ended = Some(Ended {
            at: Instant::now(),
            status,
        });
        self.changed.notify_waiters();
    }

    /// Waits for the first message, without taking it.
    pub(crate) async fn beginning(&self) -> Beginning {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(beginning) = self.peek() {
                return beginning;
            }
            changed.await;
        }
    }

    /// A reader of the messages after number `after`, or after the last one that was read. Ends the
    /// previous reader: each message goes to one connection (HTTPL-15).
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut state = self.lock();
        state.reader += 1;
        state.connected = true;
        let turn = state.reader;
        let after = after.unwrap_or(state.taken);
        drop(state);
        self.changed.notify_waiters();
        Reader {
            stream: Arc::clone(self),
            turn,
            after,
        }
    }

    /// Whether a connection reads the stream now.
    pub(crate) fn is_read(&self) -> bool {
        self.lock().connected
    }

    /// Whether nothing more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Whether the stream ended so long ago that it can be forgotten.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.lock();
        state
            .ended
            .as_ref()
            .is_some_and(|ended| ended.at.elapsed() >= self.replay.time)
    }

    fn has_room(&self) -> bool {
        let state = self.lock();
        // Before the first reader comes, the response is about to begin.
        let gone = state.reader > 0 && !state.connected;
        if gone || state.stalled || state.ended.is_some() {
            return true;
        }
        let unread = state.kept.iter().filter(|kept| kept.number > state.taken);
        let (messages, bytes) = unread.fold((0, 0), |(messages, bytes), kept| {
            (messages + 1, bytes + kept.message.len())
        });
        2 * messages < self.replay.messages && 2 * bytes < self.replay.bytes
    }

    fn peek(&self) -> Option<Beginning> {
        let mut state = self.lock();
        match (&state.ended, state.kept.len()) {
            (Some(Ended { status: None, .. }), 0) => Some(Beginning::Nothing),
            (
                Some(Ended {
                    status: Some(status),
                    ..
                }),
                1,
            ) => {
                let status = *status;
                let message = state.kept.pop_front()?.message;
                Some(Beginning::Answer(EncodedResponse::new(status, message)))
            }
            (_, 0) => None,
            _ => Some(Beginning::Message),
        }
    }

    fn add(&self, message: Bytes, expendable: bool) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        state.last += 1;
        state.kept_bytes += message.len();
        let number = state.last;
        state.kept.push_back(Kept {
            number,
            message,
            expendable,
        });
        state.make_room(&self.replay);
        if state.kept.len() > MAX_BACKLOG_FACTOR * self.replay.messages
            || state.kept_bytes > MAX_BACKLOG_FACTOR * self.replay.bytes
        {
            // The client does not read, and none of the messages may be dropped.
            tracing::warn!("a client does not read its stream; the stream is given up");
            state.kept.clear();
            state.kept_bytes = 0;
            state.ended = Some(Ended {
                at: Instant::now(),
                status: None,
            });
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Drops messages until the rest is within the replay limits: the oldest if it was read, else the
    /// oldest that is expendable.
    fn make_room(&mut self, replay: &Replay) {
        while self.kept.len() > replay.messages || self.kept_bytes > replay.bytes {
            let taken = self
                .kept
                .front()
                .is_some_and(|oldest| oldest.number <= self.taken);
            let victim = if taken {
                Some(0)
            } else {
                self.kept.iter().position(|kept| kept.expendable)
            };
            let Some(dropped) = victim.and_then(|position| self.kept.remove(position)) else {
                // All remaining messages are unread and must arrive.
                return;
            };
            self.kept_bytes -= dropped.message.len();
        }
    }
}

/// The result of one read.
#[derive(Debug, PartialEq)]
pub(crate) enum Read {
    /// A message and its number.
    Message(u64, Bytes),
    /// Nothing came for the time given, and the call does not wait for the client.
    Silence,
    /// The stream has ended, or a newer reader has replaced this one.
    End,
}

/// Reads a stream for one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Arc<EventStream>,
    /// Which of the stream's readers this is.
    turn: u64,
    after: u64,
}

impl Reader {
    /// The next message, or silence if none comes for `patience`. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self, patience: Option<Duration>) -> Read {
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(read) = self.take() {
                return read;
            }
            match patience {
                None => changed.await,
                Some(patience) => {
                    let silent = tokio::time::timeout(patience, changed).await.is_err();
                    if silent && !stream.lock().asking {
                        return Read::Silence;
                    }
                }
            }
        }
    }

    fn take(&mut self) -> Option<Read> {
        let mut state = self.stream.lock();
        if state.reader != self.turn {
            return Some(Read::End);
        }
        let next = state.kept.iter().find(|kept| kept.number > self.after);
        if let Some(kept) = next {
            let (number, message) = (kept.number, kept.message.clone());
            self.after = number;
            state.taken = state.taken.max(number);
            state.stalled = false;
            drop(state);
            self.stream.changed.notify_waiters();
            return Some(Read::Message(number, message));
        }
        state.ended.is_some().then_some(Read::End)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        if state.reader == self.turn {
            state.connected = false;
        }
        drop(state);
        self.stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn small() -> Arc<EventStream> {
        EventStream::new(Replay {
            messages: 8,
            bytes: 1000,
            time: Duration::from_secs(1),
        })
    }

    fn fill(stream: &EventStream) {
        for number in 0..4 {
            stream.offer(Bytes::from(format!("message {number}")));
        }
    }

    /// C57: a sender waits for a client that reads slowly, and no message is lost.
    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_waited_for() {
        let stream = small();
        fill(&stream);
        assert!(stream.room().now_or_never().is_none(), "about to be read");
        let mut reader = stream.read(None);
        assert!(stream.room().now_or_never().is_none());
        for number in 1..=4 {
            assert!(matches!(reader.next(None).await, Read::Message(n, _) if n == number));
        }
        assert!(stream.room().now_or_never().is_some());
        stream.offer(Bytes::from(vec![b'x'; 500]));
        assert!(stream.room().now_or_never().is_none(), "bytes count, too");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_gone_or_stalled_is_not_waited_for() {
        let stream = small();
        let reader = stream.read(None);
        fill(&stream);
        let ((), ()) = tokio::join!(async { drop(reader) }, stream.room());

        let mut reader = stream.read(None);
        assert!(stream.room().now_or_never().is_none());
        let began = Instant::now();
        stream.room().await;
        assert_eq!(began.elapsed(), CLIENT_STALL_TIMEOUT);
        assert!(stream.room().now_or_never().is_some(), "once is enough");
        // After the client reads again, senders wait for it again.
        reader.next(None).await;
        fill(&stream);
        assert!(stream.room().now_or_never().is_none());
        stream.end(None);
        assert!(stream.room().now_or_never().is_some());
    }
}
