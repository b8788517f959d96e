//! Legacy sessions by their ids.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldhash::HashSet;
use plexus_mcp::lifecycle::Rules;
use plexus_service::Principal;
use tokio::time::Instant;

use super::HttpOptions;
use crate::edge::Edge;
use crate::event_stream::{EventStream, Replay};
use crate::lock::lock;
use crate::outlet::Outlet;
use crate::seal::random;
use crate::session::Session;
use crate::shares::Shares;

/// The most streams of one session that are kept for a client that may come back.
const MAX_STREAMS: usize = 256;

/// A legacy session that is reached by its id.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: Box<str>,
    /// Whose it is. For everybody else it is not there.
    principal: Principal,
    pub(super) core: Arc<Session>,
    /// For messages that belong to no request.
    pub(super) standalone: Arc<EventStream>,
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    last_stream: AtomicU64,
    /// When it was last used.
    used: Mutex<Instant>,
}

impl HttpSession {
    /// A session with an id of 256 random bits.
    pub(super) fn new(
        edge: &Arc<Edge>,
        replay: Replay,
        rules: Rules,
        principal: Principal,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let standalone = EventStream::new(replay);
        let outlet = Outlet::Stream(Arc::clone(&standalone));
        Ok(Arc::new(Self {
            id: URL_SAFE_NO_PAD.encode(random::<32>()?).into(),
            core: Session::new(Arc::clone(edge), outlet, rules, principal.clone()),
            principal,
            standalone,
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
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

    fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    fn used(&self) -> Instant {
        *lock(&self.used)
    }

    fn is_idle(&self) -> bool {
        !self.core.is_busy() && !self.standalone.is_read()
    }

    fn sweep_streams(&self) {
        lock(&self.streams).retain(|_, stream| !stream.is_stale());
    }
}

/// A session in the table, where it is found by the id that it has itself: there may be very many.
#[derive(Debug)]
struct ById(Arc<HttpSession>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

/// All sessions of one server.
#[derive(Debug)]
pub(super) struct Sessions {
    table: Mutex<HashSet<ById>>,
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

    /// Adds a session; `false` if there is no room and none of those is idle that may go.
    pub(super) fn add(&self, session: Arc<HttpSession>) -> bool {
        let mut table = lock(&self.table);
        if table.len() >= self.capacity {
            let sessions = table.iter().map(|found| &found.0);
            let Some(victim) = victim(sessions, &session.principal) else {
                return false;
            };
            table.remove(&*victim.id);
            end(&victim);
        }
        table.insert(ById(session));
        true
    }

    /// The session of `principal` with this id.
    pub(super) fn get(&self, id: &[u8], principal: &Principal) -> Option<Arc<HttpSession>> {
        let id = std::str::from_utf8(id).ok()?;
        let session = lock(&self.table)
            .get(id)
            .map(|found| Arc::clone(&found.0))?;
        if session.principal != *principal {
            return None;
        }
        session.touch();
        Some(session)
    }

    pub(super) fn remove(&self, session: &HttpSession) {
        lock(&self.table).remove(&*session.id);
        end(session);
    }

    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        let table = lock(&self.table);
        table.iter().map(|found| Arc::clone(&found.0)).collect()
    }

    /// Ends all sessions, and cancels what they still do.
    pub(super) fn end_all(&self) {
        for session in self.all() {
            self.remove(&session);
        }
    }

    /// Ends what nobody uses any more.
    pub(super) fn sweep(&self) {
        for session in self.all() {
            session.sweep_streams();
            if session.is_idle() && session.used().elapsed() >= self.idle {
                tracing::debug!("ended an idle session");
                self.remove(&session);
            }
        }
    }
}

/// The session that makes room for one of `newcomer`: the longest idle of whoever has the most.
fn victim<'a>(
    sessions: impl Iterator<Item = &'a Arc<HttpSession>> + Clone,
    newcomer: &Principal,
) -> Option<Arc<HttpSession>> {
    let principals = sessions.clone().map(|session| &session.principal);
    let shares = Shares::new(principals, newcomer);
    sessions
        .filter(|session| session.is_idle())
        .filter_map(|session| Some((shares.of(&session.principal)?, session)))
        .min_by_key(|(share, session)| (Reverse(*share), session.used()))
        .map(|(_, session)| Arc::clone(session))
}

fn end(session: &HttpSession) {
    session.core.end();
    session.core.cancel_all();
    session.standalone.end(None);
}
