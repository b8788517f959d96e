//! A subscription that a client made with a management tool.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_mcp_core::{Peer, Presence, Principal, Updates};
use plexus_mcp_wire::Raw;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{NAME, SCHEME};

/// How long a subscription is kept that is neither read nor watched, if the transport does not show
/// when its client disconnects.
const SUBSCRIPTION_LEASE: Duration = Duration::from_mins(10);
/// The largest polled value that is stored; a larger one must be read from its server.
const MAX_LATEST_BYTES: usize = 64 * 1024;

/// A subscription to a tool or resource, and its changes.
pub(super) struct ManagedSubscription {
    pub(super) id: String,
    pub(super) subscriber: Subscriber,
    pub(super) target: Target,
    pub(super) reason: Option<String>,
    state: Mutex<State>,
    versions: watch::Sender<u64>,
}

/// The watched tool or resource, and how it is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) thing: Thing,
    /// The polling interval; `None` if the server sends notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interval_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Thing {
    Resource { uri: String },
    Tool { tool_name: String, arguments: Raw },
}

/// The subscriber.
pub(super) struct Subscriber {
    principal: Principal,
    pub(super) presence: Option<Presence>,
}

struct State {
    /// The number of changes since it was read.
    changes: u64,
    latest: Option<Raw>,
    /// Whether the current state was reported to the subscriber.
    is_reported: bool,
    ended: Option<String>,
    read_at: Instant,
}

impl ManagedSubscription {
    pub(super) fn new(
        id: String,
        subscriber: Subscriber,
        target: Target,
        reason: Option<String>,
    ) -> Self {
        let state = State {
            changes: 0,
            latest: None,
            is_reported: true,
            ended: None,
            read_at: Instant::now(),
        };
        Self {
            id,
            subscriber,
            target,
            reason,
            state: Mutex::new(state),
            versions: watch::Sender::new(0),
        }
    }

    /// Records a change, with the new value if it is known.
    pub(super) fn changed(&self, latest: Option<Raw>) {
        self.update(|state| {
            state.changes += 1;
            state.latest = latest.filter(|latest| latest.len() <= MAX_LATEST_BYTES);
        });
    }

    /// Records that it has ended.
    pub(super) fn ended(&self, why: String) {
        self.update(|state| state.ended = Some(why));
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Notifies of every change.
    pub(super) fn updates(&self) -> Updates {
        Updates::new(self.versions.subscribe())
    }

    /// The text that reports a change or the end once, and where to read more.
    pub(super) fn news(&self) -> Option<String> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_reported, true) {
            return None;
        }
        let reason = match &self.reason {
            Some(reason) => format!(" (reason of your subscription: {reason})"),
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

    /// The content of the subscription's resource. Reading it resets the counter.
    pub(super) fn read(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Report<'a> {
            subscription_id: &'a str,
            #[serde(flatten)]
            target: &'a Target,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            /// Since it was last read.
            changes: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            latest: Option<&'a Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ended: Option<&'a str>,
        }
        let mut state = self.state();
        let changes = std::mem::take(&mut state.changes);
        state.is_reported = true;
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

    /// Waits until the subscriber is gone.
    pub(super) async fn abandoned(&self) {
        if let Some(presence) = &self.subscriber.presence {
            return presence.over().await;
        }
        loop {
            let expires = self.state().read_at + SUBSCRIPTION_LEASE;
            let now = Instant::now();
            if now < expires {
                tokio::time::sleep_until(expires).await;
            } else if self.versions.receiver_count() > 0 {
                // A client that listens need not read a value that does not change.
                tokio::time::sleep_until(now + SUBSCRIPTION_LEASE).await;
            } else {
                return;
            }
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.is_reported = false;
        drop(state);
        self.versions.send_modify(|version| *version += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    pub(super) fn new(peer: &Peer) -> Self {
        Self {
            principal: peer.principal.clone(),
            presence: peer.presence.clone(),
        }
    }

    /// Whether the subscriber may be `peer`. Clients without a connection of their own cannot be
    /// told apart.
    pub(super) fn may_be(&self, peer: &Peer) -> bool {
        self.principal == peer.principal && self.presence == peer.presence
    }

    /// Whether the subscriber is `peer` for certain.
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
