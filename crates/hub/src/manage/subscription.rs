//! One subscription.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_service::{Peer, Presence, Principal, Updates};
use plexus_wire::Raw;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{NAME, SCHEME};

/// How long a subscription is kept that nobody looks at, where nothing tells that its client is
/// gone.
const LEASE: Duration = Duration::from_mins(10);
/// The largest thing that is kept to be read; what is larger must be read where it is.
const MAX_LATEST: usize = 64 * 1024;

/// Something that is watched for somebody, and what has come of it.
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) target: Target,
    pub(super) reason: Option<String>,
    state: Mutex<State>,
    versions: watch::Sender<u64>,
}

/// What is watched, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) thing: Thing,
    /// How often it is looked at; `None` if the server says when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interval_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Thing {
    Resource { uri: String },
    Tool { tool_name: String, arguments: Raw },
}

/// For whom something is watched.
pub(super) struct Owner {
    principal: Principal,
    pub(super) presence: Option<Presence>,
}

struct State {
    /// Changes since it was read.
    changes: u64,
    latest: Option<Raw>,
    /// The owner knows of all this.
    told: bool,
    ended: Option<String>,
    read_at: Instant,
}

impl Subscription {
    pub(super) fn new(id: String, owner: Owner, target: Target, reason: Option<String>) -> Self {
        let state = State {
            changes: 0,
            latest: None,
            told: true,
            ended: None,
            read_at: Instant::now(),
        };
        Self {
            id,
            owner,
            target,
            reason,
            state: Mutex::new(state),
            versions: watch::Sender::new(0),
        }
    }

    /// It changed, and is this now, if that is known.
    pub(super) fn changed(&self, latest: Option<Raw>) {
        self.update(|state| {
            state.changes += 1;
            state.latest = latest.filter(|latest| latest.len() <= MAX_LATEST);
        });
    }

    /// It is watched no longer.
    pub(super) fn ended(&self, why: String) {
        self.update(|state| state.ended = Some(why));
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Each time it changes.
    pub(super) fn updates(&self) -> Updates {
        Updates::new(self.versions.subscribe())
    }

    /// What is told to its owner once: that it changed or ended, and where to read more.
    pub(super) fn news(&self) -> Option<String> {
        let mut state = self.state();
        if std::mem::replace(&mut state.told, true) {
            return None;
        }
        let reason = match &self.reason {
            Some(reason) => format!(" (you watch it because: {reason})"),
            None => String::new(),
        };
        if let Some(why) = &state.ended {
            return Some(format!(
                "{} is no longer watched{reason}: {why}",
                self.target
            ));
        }
        let times = match state.changes {
            1 => String::new(),
            times => format!(" {times} times"),
        };
        let read = match (&self.target.thing, self.target.interval_ms) {
            (Thing::Resource { uri }, None) => (&*self.target.server, uri.clone()),
            _ => (NAME, format!("{SCHEME}{}", self.id)),
        };
        Some(format!(
            "{} changed{times}{reason}; read it with ReadMcpResource, server {:?}, uri {:?}",
            self.target, read.0, read.1
        ))
    }

    /// What there is to read; with it the owner knows everything.
    pub(super) fn read(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Report<'a> {
            subscription_id: &'a str,
            #[serde(flatten)]
            target: &'a Target,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            /// Since it was read last.
            changes: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            latest: Option<&'a Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ended: Option<&'a str>,
        }
        let mut state = self.state();
        let changes = std::mem::take(&mut state.changes);
        state.told = true;
        state.read_at = Instant::now();
        serde_json::to_string(&Report {
            subscription_id: &self.id,
            target: &self.target,
            reason: self.reason.as_deref(),
            changes,
            latest: state.latest.as_ref(),
            ended: state.ended.as_deref(),
        })
    }

    /// Waits until its owner is gone.
    pub(super) async fn abandoned(&self) {
        if let Some(presence) = &self.owner.presence {
            return presence.over().await;
        }
        loop {
            let expires = self.state().read_at + LEASE;
            let now = Instant::now();
            if now < expires {
                tokio::time::sleep_until(expires).await;
            } else if self.versions.receiver_count() > 0 {
                // Somebody listens, and need not read what does not change.
                tokio::time::sleep_until(now + LEASE).await;
            } else {
                return;
            }
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.told = false;
        drop(state);
        self.versions.send_modify(|version| *version += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    pub(super) fn new(peer: &Peer) -> Self {
        Self {
            principal: peer.principal.clone(),
            presence: peer.presence.clone(),
        }
    }

    /// Whether it may be `peer`: nothing else can be said of callers that are not known to stay.
    pub(super) fn may_be(&self, peer: &Peer) -> bool {
        self.principal == peer.principal && self.presence == peer.presence
    }

    /// Whether it is `peer` for certain.
    pub(super) fn is(&self, peer: &Peer) -> bool {
        let known = self.presence.is_some() || self.principal != Principal::anonymous();
        known && self.may_be(peer)
    }
}

impl Target {
    /// The tool's name or the resource's URI.
    pub(super) fn name(&self) -> &str {
        match &self.thing {
            Thing::Resource { uri } => uri,
            Thing::Tool { tool_name, .. } => tool_name,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.thing {
            Thing::Resource { .. } => "the resource",
            Thing::Tool { .. } => "what is answered by the tool",
        };
        write!(
            f,
            "{kind} {:?} of the server {:?}",
            self.name(),
            self.server
        )
    }
}
