//! State that the task of a server and its calls share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use plexus_mcp_core::Catalogue;
use plexus_mcp_protocol::Era;
use plexus_mcp_protocol::messages::{Implementation, ServerCapabilities};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{Prepare, StartSlots, Supervision};
use crate::connected_server::ConnectedServer;
use crate::definition::Definition;
use crate::lock::lock;
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::status::{ServerState, Status};

/// Facts about a server that outlive its connections.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct History {
    /// How long it took to connect.
    pub connected_in: Option<Duration>,
    /// The last error, and when it happened.
    pub last_error: Option<(SystemTime, String)>,
    /// The revision that it spoke last.
    pub revision: Option<String>,
}

pub(super) struct Shared {
    name: Option<Arc<str>>,
    pub(super) prepare: Prepare,
    pub(super) slots: StartSlots,
    pub(super) status: watch::Sender<Status>,
    pub(super) catalogue: watch::Sender<Arc<Catalogue>>,
    pub(super) subscriptions: Arc<ResourceSubscriptions>,
    pub(super) tasks: TaskTracker,
    server: Mutex<Option<Arc<ConnectedServer>>>,
    /// As it was last made.
    definition: Mutex<Option<Arc<Definition>>>,
    /// The era it spoke when it was connected last; asking again takes time (VER26-21).
    era: Mutex<Option<Era>>,
    history: Mutex<History>,
    is_known: AtomicBool,
    is_failing: AtomicBool,
    /// When the last attempt began; `None` before the first one, and while one waits for a start slot.
    started_at: watch::Sender<Option<Instant>>,
    /// When the next attempt begins, while the server is in backoff.
    next_attempt: Mutex<Option<Instant>>,
}

impl Shared {
    pub(super) fn new(prepare: Prepare, supervision: Supervision) -> Self {
        let Supervision {
            name, known, slots, ..
        } = supervision;
        let is_known = AtomicBool::new(known.is_some());
        let (catalogue, revision) = known.unwrap_or_else(|| (Arc::new(nothing()), None));
        Self {
            name,
            prepare,
            slots,
            status: watch::Sender::new(Status::new(ServerState::Pending, None)),
            catalogue: watch::Sender::new(catalogue),
            subscriptions: Arc::default(),
            tasks: TaskTracker::new(),
            server: Mutex::default(),
            definition: Mutex::default(),
            era: Mutex::default(),
            history: Mutex::new(History {
                revision,
                ..History::default()
            }),
            is_known,
            is_failing: AtomicBool::new(false),
            started_at: watch::Sender::new(None),
            next_attempt: Mutex::default(),
        }
    }

    pub(super) fn server(&self) -> Option<Arc<ConnectedServer>> {
        lock(&self.server).clone()
    }

    pub(super) fn set_live(&self, server: Option<Arc<ConnectedServer>>) {
        *lock(&self.server) = server;
    }

    pub(super) fn definition(&self) -> Option<Arc<Definition>> {
        lock(&self.definition).clone()
    }

    pub(super) fn set_definition(&self, definition: Arc<Definition>) {
        *lock(&self.definition) = Some(definition);
    }

    pub(super) fn era(&self) -> Option<Era> {
        *lock(&self.era)
    }

    pub(super) fn forget_era(&self) {
        *lock(&self.era) = None;
    }

    pub(super) fn set_started_at(&self, time: Option<Instant>) {
        self.started_at.send_replace(time);
    }

    pub(super) fn started_at(&self) -> watch::Receiver<Option<Instant>> {
        self.started_at.subscribe()
    }

    pub(super) fn set_next_attempt(&self, time: Option<Instant>) {
        *lock(&self.next_attempt) = time;
    }

    pub(super) fn next_attempt(&self) -> Option<Instant> {
        *lock(&self.next_attempt)
    }

    pub(super) fn note_era(&self, era: Era) {
        *lock(&self.era) = Some(era);
    }

    pub(super) fn note_connected_in(&self, took: Duration) {
        lock(&self.history).connected_in = Some(took);
    }

    pub(super) fn history(&self) -> History {
        lock(&self.history).clone()
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Acquire)
    }

    /// Lists need not wait for the server any more. Must come before the status that goes with it:
    /// only the status wakes those that wait.
    pub(super) fn set_known(&self) {
        self.is_known.store(true, Ordering::Release);
    }

    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    /// The server is connected, and what it offers is in the catalogue.
    pub(super) fn connected(&self, server: &Arc<ConnectedServer>) {
        let revision = server.facts.revision.as_str();
        tracing::info!(server = self.name(), revision, "connected to a server");
        lock(&self.history).revision = Some(revision.to_owned());
        self.set_live(Some(Arc::clone(server)));
        self.set_known();
        self.publish_connected(server);
    }

    /// Publishes the status of a connected server. C37: a server whose lists fail is connected, and
    /// its status has the reason.
    pub(super) fn publish_connected(&self, server: &ConnectedServer) {
        let list_problems: Vec<_> = server
            .list_problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        let reason = (!list_problems.is_empty()).then(|| list_problems.join("; "));
        let known = self.status.borrow().clone();
        if known.state == ServerState::Connected && known.reason == reason {
            return;
        }
        if let Some(reason) = &reason {
            tracing::warn!(server = self.name(), %reason, "a list of a server is incomplete");
        }
        self.set_status(ServerState::Connected, reason);
    }

    /// Publishes `catalogue` as that of the server, if it differs.
    pub(super) fn replace_catalogue(&self, catalogue: Arc<Catalogue>) {
        self.catalogue.send_if_modified(|offered| {
            let differs = catalogue.differs_from(offered);
            if differs {
                *offered = catalogue;
            }
            differs
        });
    }

    /// Empties the catalogue, because a user disconnected the server.
    pub(super) fn offer_nothing(&self) {
        self.catalogue.send_replace(Arc::new(nothing()));
    }

    pub(super) fn set_status(&self, state: ServerState, reason: Option<String>) {
        let status = Status::new(state, reason);
        match state {
            ServerState::Failed | ServerState::NeedsAuth => {
                self.is_failing.store(true, Ordering::Release);
                if let Some(reason) = &status.reason {
                    lock(&self.history).last_error = Some((status.since, reason.clone()));
                }
            }
            ServerState::Connected => self.is_failing.store(false, Ordering::Release),
            ServerState::Pending | ServerState::Disabled => {}
        }
        self.status.send_replace(status);
    }

    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// The server's name, or "server" if it has none.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("server")
    }

    /// The server's name as a subject.
    pub(super) fn display_name(&self) -> String {
        match &self.name {
            Some(name) => format!("the server {name:?}"),
            None => "the server".to_owned(),
        }
    }

    /// The command that brings the server back, as the end of a sentence.
    pub(super) fn reconnect_hint(&self) -> String {
        let Some(name) = &self.name else {
            return String::new();
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = if name.chars().all(is_plain) {
            name.to_string()
        } else {
            format!("{name:?}")
        };
        format!("; to start it, run 'plexus servers reconnect {name}'")
    }
}

/// The empty catalogue of a server that was never connected.
pub(super) fn nothing() -> Catalogue {
    Catalogue::new(Implementation::new("", ""), ServerCapabilities::default())
}
