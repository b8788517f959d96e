//! One session with a server: its revision, and the state of its callers.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use plexus_mcp_core::{Call, Question};
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

/// How many completed page visits are remembered. When there are more, the oldest is forgotten.
const MAX_UNCLAIMED_VISITS: usize = 64;

/// One session with a server: its connection, its revision and the state of its callers. Callers with
/// equal `SessionKey`s share a session, in either era.
pub(crate) struct Session {
    pub(crate) rpc: Rpc,
    pub(super) revision: Revision,
    /// Questions come on a channel that does not say which call they belong to.
    pub(super) mixes_questions: bool,
    /// From which level on the server was told to log.
    level: AsyncMutex<Option<LogLevel>>,
    /// The roots of its callers, if they were asked ahead of need.
    roots: Mutex<Option<Raw>>,
    priming: AsyncMutex<()>,
    /// Pages that the server says were visited.
    visits: Mutex<VecDeque<String>>,
    visited: Notify,
}

impl Session {
    pub(super) fn new(rpc: Rpc, revision: Revision, names_calls: bool) -> Self {
        Self {
            rpc,
            revision,
            mixes_questions: revision.era() == Era::Handshake && !names_calls,
            level: AsyncMutex::default(),
            roots: Mutex::default(),
            priming: AsyncMutex::default(),
            visits: Mutex::default(),
            visited: Notify::new(),
        }
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
        // A server that cannot do so, or does not say so, logs as it likes.
        let answer = async { request.await?.answer().await };
        if let Ok(Err(failure)) = timeout(SET_LOG_LEVEL_TIMEOUT, answer).await {
            tracing::debug!(%failure, "the server does not set its log level");
        }
        *level = Some(wanted);
    }

    /// Asks the caller for its roots before its first call, and tells the server that there are some
    /// (TRANSLATION §5.10).
    pub(super) async fn prime(&self, call: &Call) {
        if !call.peer().capabilities.roots || !method::allows_input_required(&call.method) {
            return;
        }
        let _one_asks = self.priming.lock().await;
        if self.roots().is_some() {
            return;
        }
        if let Ok(roots) = call.events.ask(None, Question::Roots).await {
            *lock(&self.roots) = Some(roots);
            self.rpc.notify_and_wait(method::ROOTS_CHANGED).await;
        }
    }

    /// The roots that were asked for ahead of need.
    pub(super) fn roots(&self) -> Option<Raw> {
        lock(&self.roots).clone()
    }

    /// The server says that the page of this elicitation was visited.
    pub(super) fn note_visit(&self, elicitation: String) {
        let mut visits = lock(&self.visits);
        if visits.len() >= MAX_UNCLAIMED_VISITS {
            visits.pop_front();
        }
        visits.push_back(elicitation);
        drop(visits);
        self.visited.notify_waiters();
    }

    /// Waits until all these pages were visited.
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
