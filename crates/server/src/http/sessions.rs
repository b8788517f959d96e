//! Legacy sessions by their ids.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
use crate::edge::Edge;
use crate::event_stream::{EventStream, Replay};
use crate::fair_eviction::PrincipalShares;
use crate::lock::lock;
use crate::seal::random;
use crate::session::Session;
use crate::session_sink::SessionSink;

/// The most streams of one session that are kept for a client that may come back.
const MAX_STREAMS: usize = 256;

/// The id of a session: 256 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; 32]);

impl SessionId {
    fn new() -> Result<Self, getrandom::Error> {
        random().map(Self)
    }

    /// The id that is written as `text`, which no other is.
    fn read(text: &[u8]) -> Option<Self> {
        // One more than an id has, so that longer texts are not cut short.
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
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    last_stream: AtomicU64,
    last_used: Mutex<Instant>,
}

impl HttpSession {
    pub(super) fn new(
        edge: &Arc<Edge>,
        replay: Replay,
        rules: LifecycleRules,
        principal: Principal,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let standalone = EventStream::new(replay);
        let sink = SessionSink::Stream(Arc::clone(&standalone));
        Ok(Arc::new(Self {
            id: SessionId::new()?,
            core: Session::new(Arc::clone(edge), sink, rules, principal),
            standalone,
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            last_used: Mutex::new(Instant::now()),
        }))
    }

    /// A stream for one request, and its number.
    pub(super) fn open_stream(&self, replay: Replay) -> (u64, Arc<EventStream>) {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = EventStream::new(replay);
        let mut streams = lock(&self.streams);
        if streams.len() >= MAX_STREAMS {
            streams.retain(|_, stream| !stream.has_ended());
        }
        streams.insert(number, Arc::clone(&stream));
        (number, stream)
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.standalone));
        }
        lock(&self.streams).get(&number).cloned()
    }

    pub(super) fn forget_stream(&self, number: u64) {
        lock(&self.streams).remove(&number);
    }

    /// The owner of the session. It does not exist for any other principal.
    fn principal(&self) -> &Principal {
        self.core.principal()
    }

    fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    fn last_used(&self) -> Instant {
        *lock(&self.last_used)
    }

    fn is_idle(&self) -> bool {
        !self.core.is_busy() && !self.standalone.is_read()
    }

    fn sweep_streams(&self) {
        lock(&self.streams).retain(|_, stream| !stream.is_stale());
    }
}

/// All sessions of one server.
#[derive(Debug)]
pub(super) struct Sessions {
    table: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    capacity: usize,
    idle: Duration,
}

impl Sessions {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            capacity: options.max_sessions,
            idle: options.session_idle,
        }
    }

    /// Adds a session; `false` if the table is full and no session can be evicted.
    pub(super) fn add(&self, session: Arc<HttpSession>) -> bool {
        session.touch();
        let mut table = lock(&self.table);
        if table.len() >= self.capacity {
            let Some(victim) = victim(table.values(), session.principal()) else {
                return false;
            };
            table.remove(&victim.id);
            end(&victim);
        }
        table.insert(session.id, session);
        true
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
        lock(&self.table).remove(&session.id);
        end(session);
    }

    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        lock(&self.table).values().cloned().collect()
    }

    /// Ends all sessions and cancels their requests in flight.
    pub(super) fn end_all(&self) {
        for session in self.all() {
            self.remove(&session);
        }
    }

    /// Ends idle sessions and forgets finished streams.
    pub(super) fn sweep(&self) {
        for session in self.all() {
            session.sweep_streams();
            if session.is_idle() && session.last_used().elapsed() >= self.idle {
                tracing::debug!("ended an idle session");
                self.remove(&session);
            }
        }
    }
}

/// Session eviction: the session that makes room for one of `newcomer`. It is the longest idle session
/// of the principal with the most sessions.
fn victim<'a>(
    sessions: impl Iterator<Item = &'a Arc<HttpSession>> + Clone,
    newcomer: &Principal,
) -> Option<Arc<HttpSession>> {
    let principals = sessions.clone().map(|session| session.principal());
    let shares = PrincipalShares::new(principals, newcomer);
    sessions
        .filter(|session| session.is_idle())
        .filter_map(|session| Some((shares.of(session.principal())?, session)))
        .min_by_key(|(share, session)| (Reverse(*share), session.last_used()))
        .map(|(_, session)| Arc::clone(session))
}

fn end(session: &HttpSession) {
    session.core.end();
    session.core.cancel_all();
    session.standalone.end(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HTTPL-18, SEC-03: an id is found by its text and by no other that says the same bits.
    #[test]
    fn an_id_has_one_text() {
        let id = SessionId::new().unwrap();
        let text = id.to_string();
        assert_eq!(text.len(), 43);
        assert_eq!(SessionId::read(text.as_bytes()), Some(id));

        let mut same_bits = text.clone().into_bytes();
        // The last letter says four bits, and two that must be zero.
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
