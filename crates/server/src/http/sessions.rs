//! Legacy sessions by their ids.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_mcp_core::Principal;
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use tokio::time::Instant;

use super::HttpOptions;
use super::eviction_order::{EvictionOrder, Full};
use crate::edge::Edge;
use crate::event_stream::{EventStream, Replay, SessionStreams};
use crate::lock::lock;
use crate::replay_budget::{ReplayBudget, ReplayShare};
use crate::seal::random;
use crate::session::Session;
use crate::session_sink::SessionSink;

/// After so many sessions, a task that visits all of them lets other tasks run.
const VISITED_AT_ONCE: usize = 256;

/// The id of a session: 256 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; 32]);

impl SessionId {
    fn new() -> Result<Self, getrandom::Error> {
        random().map(Self)
    }

    /// Parses an id. Each id has only one valid text.
    fn read(text: &[u8]) -> Option<Self> {
        // One byte more than an id, so that a longer text is rejected.
        let mut bytes = [0; 33];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        bytes.get(..length)?.try_into().map(Self).ok()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}

/// A legacy session that is reached by its id.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: SessionId,
    pub(super) core: Arc<Session>,
    /// For messages that belong to no request.
    pub(super) standalone: Arc<EventStream>,
    replay: Replay,
    share: Arc<ReplayShare>,
    streams: Arc<SessionStreams>,
    /// The place in the order of eviction.
    pub(super) place: AtomicU64,
    /// The last use, in milliseconds since `opened`.
    last_used: AtomicU64,
    opened: Instant,
}

impl HttpSession {
    /// A stream for one request, and its number.
    pub(super) fn open_stream(&self) -> (u64, Arc<EventStream>) {
        SessionStreams::open(&self.streams, self.replay, &self.share)
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.standalone));
        }
        self.streams.get(number)
    }

    pub(super) fn forget_stream(&self, number: u64) {
        self.streams.forget(number);
    }

    /// The owner of the session. It does not exist for any other principal.
    pub(super) fn principal(&self) -> &Principal {
        self.core.principal()
    }

    fn touch(&self) {
        self.last_used.store(self.age(), Ordering::Relaxed);
    }

    /// When the session was used last.
    pub(super) fn last_used(&self) -> Instant {
        self.opened + Duration::from_millis(self.last_used.load(Ordering::Relaxed))
    }

    /// The time since the session was opened, in milliseconds.
    fn age(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.core.is_busy() && !self.standalone.is_read()
    }

    fn end(&self) {
        self.core.end();
        self.core.cancel_all();
        self.standalone.end(None);
    }
}

/// All sessions of one server.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Locked by every request, for one access.
    table: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    /// Locked when a session is opened or ends, but not by other requests.
    order: Mutex<EvictionOrder>,
    replay: Replay,
    replay_budget: Arc<ReplayBudget>,
    idle: Duration,
}

impl Sessions {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            order: Mutex::new(EvictionOrder::new(
                options.max_sessions,
                options.max_sessions_per_principal,
            )),
            replay: options.replay,
            replay_budget: ReplayBudget::new(options.replay.total_bytes),
            idle: options.session_idle,
        }
    }

    /// A new session, which is not in the table yet.
    ///
    /// # Errors
    /// The system has no randomness for its id.
    pub(super) fn open(
        &self,
        edge: &Arc<Edge>,
        rules: LifecycleRules,
        principal: Principal,
    ) -> Result<Arc<HttpSession>, getrandom::Error> {
        let replay = self.replay;
        let share = self.replay_budget.share(&principal);
        let standalone = EventStream::standalone(replay, &share);
        let sink = SessionSink::Stream(Arc::clone(&standalone));
        Ok(Arc::new(HttpSession {
            id: SessionId::new()?,
            core: Session::new(Arc::clone(edge), sink, rules, principal),
            standalone,
            replay,
            share,
            streams: Arc::default(),
            place: AtomicU64::new(0),
            last_used: AtomicU64::new(0),
            opened: Instant::now(),
        }))
    }

    /// Adds a session. If there are too many, the longest idle session of the principal is evicted that
    /// has the most sessions.
    ///
    /// # Errors
    /// No session can be evicted, because those that were looked at are in use.
    pub(super) fn add(&self, session: Arc<HttpSession>) -> Result<(), Full> {
        session.touch();
        let evicted = lock(&self.order).add(&session)?;
        let mut table = lock(&self.table);
        table.insert(session.id, session);
        if let Some(evicted) = &evicted {
            table.remove(&evicted.id);
        }
        drop(table);
        if let Some(evicted) = evicted {
            evicted.end();
        }
        Ok(())
    }

    /// The session of `principal` with this id.
    pub(super) fn get(&self, id: &[u8], principal: &Principal) -> Option<Arc<HttpSession>> {
        let id = SessionId::read(id)?;
        let session = lock(&self.table).get(&id).cloned()?;
        if session.principal() != principal {
            return None;
        }
        session.touch();
        Some(session)
    }

    pub(super) fn remove(&self, session: &HttpSession) {
        lock(&self.order).remove(session);
        let removed = lock(&self.table).remove(&session.id);
        drop(removed);
        session.end();
    }

    /// All sessions. Requests in other sessions do not wait for this.
    fn all(&self) -> Vec<Arc<HttpSession>> {
        lock(&self.order).sessions()
    }

    /// Notifies all clients of lists that changed for them.
    pub(super) async fn announce(&self) {
        for sessions in self.all().chunks(VISITED_AT_ONCE) {
            for session in sessions {
                session.core.announce();
            }
            tokio::task::yield_now().await;
        }
    }

    /// Ends all sessions and cancels their requests in flight.
    pub(super) fn end_all(&self) {
        for session in self.all() {
            self.remove(&session);
        }
    }

    /// Ends idle sessions and forgets finished streams.
    pub(super) async fn sweep(&self) {
        for sessions in self.all().chunks(VISITED_AT_ONCE) {
            for session in sessions {
                session.streams.sweep();
                if session.is_idle() && session.last_used().elapsed() >= self.idle {
                    tracing::debug!("ended an idle session");
                    self.remove(session);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HTTPL-18, SEC-03: an id is found by its own text only, not by another encoding of the same
    /// bits.
    #[test]
    fn an_id_has_one_text() {
        let id = SessionId::new().unwrap();
        let text = id.to_string();
        assert_eq!(text.len(), 43);
        assert_eq!(SessionId::read(text.as_bytes()), Some(id));

        let mut same_bits = text.clone().into_bytes();
        // The last letter encodes four bits of the id, and two bits that must be zero.
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let last = same_bits.last_mut().unwrap();
        let place = alphabet.iter().position(|letter| letter == last).unwrap();
        *last = alphabet[place + 1];
        assert_eq!(SessionId::read(&same_bits), None);

        for other in [
            "",
            "A",
            text.get(..42).unwrap(),
            &format!("{text}A"),
            &format!("{text}="),
        ] {
            assert_eq!(SessionId::read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(SessionId::read(&[b'A'; 1000]), None);
        assert_eq!(SessionId::read(&[0xff; 43]), None);
    }
}
