//! Chats in the background. Their events are kept until the client polls them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::ClaudeCodeError;
use super::event::ChatEvent;

/// The maximum number of chats that run in the background.
const MAX_RUNNING_CHATS: usize = 16;
/// How long an ended stream is kept.
const ENDED_RETENTION: Duration = Duration::from_hours(1);
/// The maximum size of the events that each stream keeps, in bytes; the oldest are dropped first.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// The streams of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    all: Arc<Mutex<Vec<Arc<ChatStream>>>>,
}

/// The events of one chat.
#[derive(Debug)]
pub(super) struct ChatStream {
    pub(super) id: String,
    pub(super) session_name: String,
    state: Mutex<State>,
    changed: Notify,
    /// Cancels the chat.
    pub(super) cancel: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Raw>,
    bytes: usize,
    /// The sequence number of the oldest event that is kept.
    first: u64,
    status: Status,
    ended: Option<Instant>,
}

/// The state of a chat.
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

/// The short form of a stream.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Summary {
    /// The stream's id, for `poll`
    stream_id: String,
    /// The name of the session
    session_name: String,
    /// The state of the chat
    status: Status,
    /// Number of events so far
    events: u64,
}

/// The result of polling a stream.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Polled {
    /// The stream's id
    stream_id: String,
    /// The state of the chat
    status: Status,
    /// The sequence number of the first event here; higher than requested if older events were dropped
    from_seq: u64,
    /// The sequence number for the next poll
    next_seq: u64,
    /// The events, in order
    #[schemars(with = "Vec<Map<String, Value>>")]
    events: Vec<Raw>,
}

impl Streams {
    /// Creates a stream for a chat in this session.
    pub(super) fn open(&self, session_name: &str) -> Result<Arc<ChatStream>, ClaudeCodeError> {
        let mut all = self.lock();
        all.retain(|stream| !stream.is_stale());
        if all.iter().filter(|stream| !stream.is_over()).count() >= MAX_RUNNING_CHATS {
            return Err(ClaudeCodeError::TooMany(MAX_RUNNING_CHATS));
        }
        let stream = Arc::new(ChatStream {
            id: format!("stream_{}", Uuid::now_v7().simple()),
            session_name: session_name.to_owned(),
            state: Mutex::default(),
            changed: Notify::new(),
            cancel: CancellationToken::new(),
        });
        all.push(Arc::clone(&stream));
        Ok(stream)
    }

    /// Cancels the chats of a session. Returns whether there were any.
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

    pub(super) fn get(&self, id: &str) -> Result<Arc<ChatStream>, ClaudeCodeError> {
        let all = self.lock();
        let found = all.iter().find(|stream| stream.id == id);
        let found = found.ok_or_else(|| ClaudeCodeError::NoStream(id.to_owned()))?;
        Ok(Arc::clone(found))
    }

    /// All streams, the oldest first.
    pub(super) fn list(&self) -> Vec<Summary> {
        let all = self.lock();
        all.iter().map(|stream| stream.summary()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ChatStream>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatStream {
    /// Appends an event.
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
        while state.bytes > MAX_EVENT_BYTES
            && let Some(oldest) = state.events.pop_front()
        {
            state.bytes -= oldest.len();
            state.first += 1;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The events from sequence number `from` on, `limit` at most. Waits until there are some, the
    /// chat has ended, or `timeout` has passed.
    pub(super) async fn poll(&self, from: u64, limit: usize, timeout: Duration) -> Polled {
        let deadline = Instant::now() + timeout;
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
        ended.is_some_and(|ended| ended.elapsed() > ENDED_RETENTION)
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
