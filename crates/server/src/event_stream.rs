//! A resumable stream of messages to a legacy HTTP client. Messages that were sent are kept for a
//! while, so that a client that lost its connection resumes after the last message it received.

mod session_streams;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::encoder::EncodedResponse;
use crate::lock::lock;
use crate::replay_budget::ReplayShare;
pub(crate) use session_streams::SessionStreams;

/// The replay limits of streams.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Replay {
    /// At most so many messages of a stream.
    pub messages: usize,
    /// At most so many bytes of a stream.
    pub bytes: usize,
    /// For so long after the end of a stream.
    pub time: Duration,
    /// At most so many bytes of all streams together. Beyond that, the principal whose streams keep
    /// the most loses its oldest messages.
    pub total_bytes: usize,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            messages: 256,
            bytes: 4 * 1024 * 1024,
            time: Duration::from_mins(5),
            total_bytes: 64 * 1024 * 1024,
        }
    }
}

/// A stream may hold this many times its replay limits of messages that must not be dropped. Beyond
/// that it is closed.
const MAX_BACKLOG_FACTOR: usize = 16;

/// How long a sender waits for a client that does not read. After that it no longer waits for it.
const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The memory that a stream takes besides the bytes of its messages, and the memory of a message
/// besides its bytes. Both count towards [`Replay::total_bytes`].
const STREAM_OVERHEAD_BYTES: usize = 512;
const MESSAGE_OVERHEAD_BYTES: usize = 96;

/// How long a stream is kept whose client has probably read it to its end.
const PROBABLY_READ_TTL: Duration = Duration::from_secs(15);

/// One stream. Messages are numbered from 1; 0 is the place before the first.
#[derive(Debug)]
pub(crate) struct EventStream {
    replay: Replay,
    share: Arc<ReplayShare>,
    /// The place among the streams of the share.
    place: u64,
    /// The streams of the session, and the number of this one; `None` for the stream of messages that
    /// belong to no request.
    home: Option<(Weak<SessionStreams>, u64)>,
    state: Mutex<State>,
    changed: Notify,
}

/// The messages that an eviction may drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evictable {
    /// Those that the client has read.
    Read,
    /// Those that are kept for a client that is disconnected.
    Disconnected,
    /// All but the beginning of a response.
    Everything,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// What the share was told that this stream uses.
    charged: usize,
    /// The newest message that was dropped although it must arrive.
    lost: u64,
    last: u64,
    /// The newest message that was handed to a connection.
    taken: u64,
    /// Counts readers, so that a new one replaces the old.
    reader: u64,
    client: ClientState,
    /// The client did not read for so long that it is no longer waited for.
    stalled: bool,
    /// The last message of the call is a request to the client, whose response the call waits for.
    asking: bool,
    /// When the stream became one that its client has probably read to its end.
    probably_read: Option<Instant>,
    /// Set when nothing more will come.
    ended: Option<Ended>,
}

/// What the client of a stream does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ClientState {
    /// No connection reads the stream.
    #[default]
    Away,
    /// The response to the request waits for the first message.
    Waiting,
    /// A connection reads the stream.
    Connected,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    message: Bytes,
    /// May be dropped to make room.
    expendable: bool,
    /// The request whose progress it reports.
    progress_of: Option<u64>,
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
    /// A stream for messages that belong to no request.
    pub(crate) fn standalone(replay: Replay, share: &Arc<ReplayShare>) -> Arc<Self> {
        Self::new(replay, share, None)
    }

    /// A stream at this place in a session, or one that belongs to no request.
    fn new(
        replay: Replay,
        share: &Arc<ReplayShare>,
        home: Option<(Weak<SessionStreams>, u64)>,
    ) -> Arc<Self> {
        let client = if home.is_some() {
            ClientState::Waiting
        } else {
            ClientState::Away
        };
        let state = State {
            client,
            ..State::default()
        };
        let stream = Arc::new_cyclic(|stream| Self {
            replay,
            share: Arc::clone(share),
            place: share.add(stream),
            home,
            state: Mutex::new(state),
            changed: Notify::new(),
        });
        stream.settle(stream.lock());
        stream
    }

    /// Adds a message that must arrive.
    pub(crate) fn push(&self, message: Bytes) {
        self.add(message, false, None);
    }

    /// Waits until the client has read most of the messages, so that no further message has to be
    /// dropped (C57). Does not wait for a client that is disconnected, or that did not
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
            tracing::warn!("a client does not read its stream; notifications may be dropped");
            self.lock().stalled = true;
        }
    }

    /// Adds a message that may be dropped under load.
    pub(crate) fn offer(&self, message: Bytes) {
        self.offer_progress(message, None);
    }

    /// The same for a message about the progress of a request, if there is one: the message is dropped
    /// by [`Self::finish_progress`].
    pub(crate) fn offer_progress(&self, message: Bytes, progress_of: Option<u64>) {
        self.add(message, true, progress_of);
    }

    /// The same, unless an equal message is unread, for example an earlier `list_changed`.
    pub(crate) fn offer_once(&self, message: Bytes) {
        let state = self.lock();
        let waits = |kept: &Kept| kept.number > state.taken && kept.message == message;
        if state.kept.iter().any(waits) {
            return;
        }
        drop(state);
        self.offer(message);
    }

    /// Drops unread progress of a request that has ended: progress must not follow the answer (PROG-05).
    pub(crate) fn finish_progress(&self, request: u64) {
        let mut state = self.lock();
        let taken = state.taken;
        let is_late =
            |kept: &Kept| kept.number > taken && kept.progress_of.is_some_and(|of| of == request);
        let before = state.kept.len();
        state.kept.retain(|kept| !is_late(kept));
        if state.kept.len() < before {
            state.kept_bytes = state.kept.iter().map(|kept| kept.message.len()).sum();
            self.settle(state);
        }
    }

    /// No response waits for the first message any longer: it has begun, or its client has gone.
    pub(crate) fn stop_waiting(&self) {
        let mut state = self.lock();
        if state.client == ClientState::Waiting {
            state.client = ClientState::Away;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The client has probably read the stream to its end, so that it is kept for a short time only.
    pub(crate) fn expire_soon(&self) {
        self.lock().probably_read = Some(Instant::now());
    }

    /// Whether the messages after number `after` are kept, apart from those that may be dropped.
    pub(crate) fn can_resume(&self, after: u64) -> bool {
        after >= self.lock().lost
    }

    /// Drops messages to make room for those of other streams.
    pub(crate) fn evict(&self, evictable: Evictable) {
        let mut state = self.lock();
        if state.client == ClientState::Waiting {
            return;
        }
        let is_away = state.client == ClientState::Away;
        let all =
            evictable == Evictable::Everything || (evictable == Evictable::Disconnected && is_away);
        let limit = if all { state.last } else { state.taken };
        while let Some(oldest) = state.kept.pop_front_if(|oldest| oldest.number <= limit) {
            state.dropped(&oldest);
        }
        if !is_away && state.lost > state.taken {
            tracing::warn!("a client does not read its stream; the stream is given up");
            state.give_up();
        }
        let is_over = state.ended.is_some() && is_away && state.kept.is_empty();
        self.settle(state);
        self.changed.notify_waiters();
        if is_over
            && let Some((streams, number)) = &self.home
            && let Some(streams) = streams.upgrade()
        {
            streams.forget(*number);
        }
    }

    pub(crate) fn set_asking(&self, asking: bool) {
        self.lock().asking = asking;
    }

    /// Adds the answer, if there is one, and ends the stream. Both happen under one lock: a response
    /// that begins in between would become an event stream for no reason.
    pub(crate) fn end(&self, answer: Option<EncodedResponse>) {
        let status = answer.as_ref().map(|answer| answer.status);
        let mut state = self.lock();
        if let Some(answer) = answer {
            state.add(answer.message, false, None, &self.replay);
        }
        // The stream may have been given up before.
        state.ended.get_or_insert_with(|| Ended {
            at: Instant::now(),
            status,
        });
        self.settle(state);
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
        state.client = ClientState::Connected;
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
        self.lock().client == ClientState::Connected
    }

    /// Whether nothing more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Whether the stream ended so long ago that it can be forgotten.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.lock();
        let is_past = |at: Instant, time: Duration| at.elapsed() >= time;
        let ended = state.ended.as_ref();
        ended.is_some_and(|ended| is_past(ended.at, self.replay.time))
            || state
                .probably_read
                .is_some_and(|at| is_past(at, PROBABLY_READ_TTL))
    }

    fn has_room(&self) -> bool {
        let state = self.lock();
        // Before the first reader comes, the response is about to begin.
        let gone = state.client == ClientState::Away;
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
                state.kept_bytes -= message.len();
                self.settle(state);
                Some(Beginning::Answer(EncodedResponse::new(status, message)))
            }
            (_, 0) => None,
            _ => Some(Beginning::Message),
        }
    }

    fn add(&self, message: Bytes, expendable: bool, progress_of: Option<u64>) {
        let mut state = self.lock();
        state.add(message, expendable, progress_of, &self.replay);
        self.settle(state);
        self.changed.notify_waiters();
    }

    /// Unlocks the stream, and tells the share how much it uses now.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        let overhead = match self.home {
            Some(_) => STREAM_OVERHEAD_BYTES,
            // It is a part of its session.
            None => 0,
        };
        let uses = overhead + state.kept_bytes + state.kept.len() * MESSAGE_OVERHEAD_BYTES;
        let before = std::mem::replace(&mut state.charged, uses);
        drop(state);
        self.share.adjust(before, uses);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.share.remove(self.place);
        let charged = self.lock().charged;
        self.share.adjust(charged, 0);
    }
}

impl State {
    fn add(&mut self, message: Bytes, expendable: bool, progress_of: Option<u64>, replay: &Replay) {
        if self.ended.is_some() {
            return;
        }
        self.last += 1;
        self.kept_bytes += message.len();
        self.kept.push_back(Kept {
            number: self.last,
            message,
            expendable,
            progress_of,
        });
        self.make_room(replay);
        if self.kept.len() > MAX_BACKLOG_FACTOR * replay.messages
            || self.kept_bytes > MAX_BACKLOG_FACTOR * replay.bytes
        {
            // The client does not read, and none of the messages may be dropped.
            tracing::warn!("a client does not read its stream; the stream is given up");
            self.give_up();
        }
    }

    /// Drops all messages and ends the stream.
    fn give_up(&mut self) {
        while let Some(kept) = self.kept.pop_front() {
            self.dropped(&kept);
        }
        self.ended.get_or_insert_with(|| Ended {
            at: Instant::now(),
            status: None,
        });
    }

    fn dropped(&mut self, kept: &Kept) {
        self.kept_bytes -= kept.message.len();
        if !kept.expendable {
            self.lost = self.lost.max(kept.number);
        }
    }

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
            self.dropped(&dropped);
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

impl Reader {
    /// Whether the stream has ended and this reader has taken all of it.
    pub(crate) fn has_read_all(&self) -> bool {
        let state = self.stream.lock();
        state.reader == self.turn && state.ended.is_some() && self.after >= state.last
    }
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
    /// The next message, or silence if none comes for `timeout`. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self, timeout: Option<Duration>) -> Read {
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(read) = self.take() {
                return read;
            }
            match timeout {
                None => changed.await,
                Some(timeout) => {
                    let silent = tokio::time::timeout(timeout, changed).await.is_err();
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
            state.client = ClientState::Away;
        }
        drop(state);
        self.stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
