//! One session with a server: its revision, and the state of its callers.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plexus_mcp_core::{Call, Principal, Question};
use plexus_mcp_protocol::messages::LogLevel;
use plexus_mcp_protocol::{Era, Revision, method};
use plexus_mcp_wire::{Object, Raw};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::timeout;

use crate::hop_metadata;
use crate::link::Headers;
use crate::lock::lock;
use crate::rpc::{Rpc, Traits};

/// How long a call waits for the server to set its log level.
const SET_LOG_LEVEL_TIMEOUT: Duration = Duration::from_millis(500);

/// The most principals of one session whose roots are kept.
const MAX_PRIMED_PRINCIPALS: usize = 64;

/// How many completed page visits are remembered. When there are more, the oldest is forgotten.
const MAX_REMEMBERED_VISITS: usize = 64;

/// One session with a server: its connection, its revision and the state of its callers. Callers with
/// equal `SessionKey`s share a session, in either era.
pub(crate) struct Session {
    pub(crate) rpc: Rpc,
    pub(super) revision: Revision,
    /// The server does not know it any more. Its calls in flight may still be answered, but no
    /// further call uses it.
    is_lost: AtomicBool,
    /// A request of a caller was answered in it.
    has_answered: AtomicBool,
    /// Questions arrive on a channel that does not name the call they belong to.
    pub(super) mixes_questions: bool,
    /// The log level that the server was set to.
    level: AsyncMutex<Option<LogLevel>>,
    /// The roots that were fetched from callers in advance.
    primed: Mutex<PrimedRoots>,
    /// The last completed URL elicitations.
    visits: Mutex<VecDeque<String>>,
    visited: Notify,
}

/// Roots that were fetched in advance, by principal.
#[derive(Debug, Default)]
struct PrimedRoots {
    /// The principals of the calls, and their roots. When there are too many, the oldest is removed.
    roots: VecDeque<(Principal, Option<Raw>)>,
    is_of_several: bool,
}

impl PrimedRoots {
    /// Records a call of the principal.
    fn note(&mut self, principal: &Principal) {
        if self.roots.iter().any(|(known, _)| known == principal) {
            return;
        }
        self.is_of_several = !self.roots.is_empty();
        if self.roots.len() >= MAX_PRIMED_PRINCIPALS {
            self.roots.pop_front();
        }
        self.roots.push_back((principal.clone(), None));
    }

    /// Stores the roots of a principal, unless they are known.
    fn insert(&mut self, principal: &Principal, roots: Raw) -> bool {
        self.note(principal);
        let entry = self.roots.iter_mut().find(|(known, _)| known == principal);
        match entry {
            Some((_, stored @ None)) => {
                *stored = Some(roots);
                true
            }
            Some((_, Some(_))) | None => false,
        }
    }

    fn of(&self, principal: &Principal) -> Option<Raw> {
        let mut entries = self.roots.iter();
        let (_, roots) = entries.find(|(known, _)| known == principal)?;
        roots.clone()
    }

    fn of_only_principal(&self) -> Option<Raw> {
        let (_, roots) = self.roots.front().filter(|_| !self.is_of_several)?;
        roots.clone()
    }
}

impl Session {
    pub(super) fn new(rpc: Rpc, revision: Revision, names_calls: bool) -> Self {
        Self {
            rpc,
            revision,
            is_lost: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            mixes_questions: revision.era() == Era::Handshake && !names_calls,
            level: AsyncMutex::default(),
            primed: Mutex::default(),
            visits: Mutex::default(),
            visited: Notify::new(),
        }
    }

    /// Whether further calls can use it.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed) && !self.rpc.is_over()
    }

    /// Takes note that the server does not know it any more.
    pub(super) fn set_lost(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Whether a request of a caller was answered in it.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Takes note that a request of a caller was answered in it.
    pub(super) fn set_answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Lowers the server's log level to that of `call`, if it is higher (TRANSLATION §5.7). The level is
    /// never raised: other calls may need it, and `EventSender` filters by the level of each call.
    pub(super) async fn log_for(&self, call: &Call) {
        let Some(wanted) = call.events.log_level() else {
            return;
        };
        let mut level = self.level.lock().await;
        if level.is_some_and(|level| level <= wanted) {
            return;
        }
        let mut params = Object::new();
        params.set("level", hop_metadata::json(&wanted));
        let request = self.rpc.request(
            method::SET_LEVEL,
            Some(params.to_raw()),
            Headers::new(),
            Traits::default(),
        );
        // A server that refuses or does not answer uses a log level of its own.
        let answer = async { request.await?.answer().await };
        if let Ok(Err(failure)) = timeout(SET_LOG_LEVEL_TIMEOUT, answer).await {
            tracing::debug!(%failure, "the server does not set its log level");
        }
        *level = Some(wanted);
    }

    /// Fetches the roots from the caller if those of its principal are not known yet, and notifies the
    /// server (TRANSLATION §5.10).
    ///
    /// No call waits for the client of another one, which may take long: calls that start at the same
    /// time each ask their own.
    pub(super) async fn prime(&self, call: &Call) {
        let peer = call.peer();
        lock(&self.primed).note(&peer.principal);
        if !peer.capabilities.roots
            || !method::allows_input_required(&call.method)
            || self.roots_of(&peer.principal).is_some()
        {
            return;
        }
        if let Ok(roots) = call.events.ask(None, Question::Roots).await {
            let is_new = lock(&self.primed).insert(&peer.principal, roots);
            if is_new {
                self.rpc.notify_and_wait(method::ROOTS_CHANGED).await;
            }
        }
    }

    /// The roots of a principal that were fetched in advance.
    pub(super) fn roots_of(&self, principal: &Principal) -> Option<Raw> {
        lock(&self.primed).of(principal)
    }

    /// The answer to a request for roots outside of any call: the roots that were fetched in advance,
    /// if only one principal has called. The request does not name a caller.
    pub(super) fn roots_of_only_principal(&self) -> Option<Raw> {
        lock(&self.primed).of_only_principal()
    }

    /// Records a notification of the server that this elicitation is complete.
    pub(super) fn note_visit(&self, elicitation: String) {
        let mut visits = lock(&self.visits);
        if visits.len() >= MAX_REMEMBERED_VISITS {
            visits.pop_front();
        }
        visits.push_back(elicitation);
        drop(visits);
        self.visited.notify_waiters();
    }

    /// Waits until all these elicitations are complete.
    pub(super) async fn visits(&self, elicitations: &[String]) {
        loop {
            let visited = self.visited.notified();
            tokio::pin!(visited);
            visited.as_mut().enable();
            {
                let visits = lock(&self.visits);
                if elicitations.iter().all(|id| visits.contains(id)) {
                    return;
                }
            }
            visited.await;
        }
    }
}
