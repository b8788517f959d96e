//! Chats that go on while nobody waits for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::ClaudeCodeError;
use super::event::ChatEvent;

/// How many chats may run at once.
const RUNNING: usize = 16;
/// For how long a stream is kept that has ended.
const KEPT: Duration = Duration::from_hours(1);
/// How many bytes of events each stream keeps; the oldest go first.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The streams of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    all: Arc<Mutex<Vec<Arc<Stream>>>>,
}

/// The events of one chat.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: String,
    pub(super) session_name: String,
    state: Mutex<State>,
    changed: Notify,
    /// Fires when the chat is no longer wanted.
    pub(super) cancel: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Raw>,
    bytes: usize,
    /// The number of the first event that is kept.
    first: u64,
    status: Status,
    ended: Option<Instant>,
}

/// How far a chat is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Status {
    #[default]
    Running,
    AwaitingPermission,
    Complete,
    Failed,
}

/// One of the streams.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Summary {
    /// By which it is polled
    stream_id: String,
    /// The session that chats
    session_name: String,
    /// How far it is
    status: Status,
    /// How many events there were
    events: u64,
}

/// What happened since.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Polled {
    /// The stream
    stream_id: String,
    /// How far it is
    status: Status,
    /// The number of the first event here; more than was asked for if older ones are gone
    from_seq: u64,
    /// The number to ask for next
    next_seq: u64,
    /// What happened, in order
    #[schemars(with = "Vec<Map<String, Value>>")]
    events: Vec<Raw>,
}

impl Streams {
    /// A stream for a chat in this session.
    pub(super) fn open(&self, session_name: &str) -> Result<Arc<Stream>, ClaudeCodeError> {
        let mut all = self.lock();
        all.retain(|stream| !stream.is_stale());
        if all.iter().filter(|stream| !stream.is_over()).count() >= RUNNING {
            return Err(ClaudeCodeError::TooMany(RUNNING));
        }
        let stream = Arc::new(Stream {
            id: format!("stream_{}", Uuid::now_v7().simple()),
            session_name: session_name.to_owned(),
            state: Mutex::default(),
            changed: Notify::new(),
            cancel: CancellationToken::new(),
        });
        all.push(Arc::clone(&stream));
        Ok(stream)
    }

    /// Ends the chats of a session; says whether there are any.
    pub(super) fn cancel(&self, session_name: &str) -> bool {
        let all = self.lock();
        let mut any = false;
        for stream in all.iter().filter(|stream| !stream.is_over()) {
            if stream.session_name == session_name {
                stream.cancel.cancel();
                any = true;
            }
        }
        any
    }

    pub(super) fn get(&self, id: &str) -> Result<Arc<Stream>, ClaudeCodeError> {
        let all = self.lock();
        let found = all.iter().find(|stream| stream.id == id);
        let found = found.ok_or_else(|| ClaudeCodeError::NoStream(id.to_owned()))?;
        Ok(Arc::clone(found))
    }

    /// Every stream, the oldest first.
    pub(super) fn list(&self) -> Vec<Summary> {
        let all = self.lock();
        all.iter().map(|stream| stream.summary()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Stream>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Adds what happened.
    pub(super) fn push(&self, event: &ChatEvent) {
        let Ok(raw) = Raw::encode(event) else { return };
        let mut state = self.lock();
        match event {
            ChatEvent::Permission { .. } => state.status = Status::AwaitingPermission,
            ChatEvent::Complete(_) => state.end(Status::Complete),
            ChatEvent::Error { .. } => state.end(Status::Failed),
            _ => state.status = Status::Running,
        }
        state.bytes += raw.len();
        state.events.push_back(raw);
        while state.bytes > KEPT_BYTES
            && let Some(oldest) = state.events.pop_front()
        {
            state.bytes -= oldest.len();
            state.first += 1;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The events from number `from` on, `limit` at most: as soon as there are some, or the chat
    /// is over, or `patience` is.
    pub(super) async fn poll(&self, from: u64, limit: usize, patience: Duration) -> Polled {
        let deadline = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            let polled = self.look(from, limit);
            let is_over = matches!(polled.status, Status::Complete | Status::Failed);
            if is_over || !polled.events.is_empty() || timeout_at(deadline, changed).await.is_err()
            {
                return polled;
            }
        }
    }

    fn look(&self, from: u64, limit: usize) -> Polled {
        let state = self.lock();
        let from_seq = from.max(state.first);
        let skip = usize::try_from(from_seq - state.first).unwrap_or(usize::MAX);
        let events: Vec<_> = state
            .events
            .iter()
            .skip(skip)
            .take(limit)
            .cloned()
            .collect();
        Polled {
            stream_id: self.id.clone(),
            status: state.status,
            from_seq,
            next_seq: from_seq + events.len() as u64,
            events,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().ended.is_some()
    }

    fn is_stale(&self) -> bool {
        let ended = self.lock().ended;
        ended.is_some_and(|ended| ended.elapsed() > KEPT)
    }

    fn summary(&self) -> Summary {
        let state = self.lock();
        Summary {
            stream_id: self.id.clone(),
            session_name: self.session_name.clone(),
            status: state.status,
            events: state.first + state.events.len() as u64,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end(&mut self, status: Status) {
        self.status = status;
        self.ended = Some(Instant::now());
    }
}
