//! Resource subscriptions of the callers of one server, which outlive its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_core::Updates;
use plexus_mcp_protocol::Fault;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lock::lock;

/// Counts the watchers of each resource of one server. Each new connection subscribes to all of them
/// again.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions {
    resources: Mutex<HashMap<Arc<str>, Resource>>,
    changes: watch::Sender<()>,
}

struct Resource {
    versions: watch::Sender<u64>,
    status: watch::Sender<SubscriptionStatus>,
    watchers: usize,
    /// Since when it has no watchers.
    idle_since: Option<Instant>,
}

/// The status of a subscription at the server.
#[derive(Debug, Clone)]
enum SubscriptionStatus {
    /// The server has not answered yet.
    Pending,
    Accepted,
    Refused(Fault),
}

impl Resource {
    fn is_accepted(&self) -> bool {
        matches!(*self.status.borrow(), SubscriptionStatus::Accepted)
    }
}

impl ResourceSubscriptions {
    /// Adds a watcher of `uri`, and waits up to `timeout` for the server to accept the subscription.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        uri: &str,
        timeout: Duration,
    ) -> Result<Updates, Fault> {
        let uri: Arc<str> = uri.into();
        let (versions, mut status) = self.join(&uri);
        let watcher = Watcher {
            subscriptions: Arc::clone(self),
            uri,
            versions: versions.clone(),
        };
        let late = || Fault::Internal("the subscription was not answered in time".to_owned());
        let answered = status.wait_for(|status| !matches!(status, SubscriptionStatus::Pending));
        let answered = tokio::time::timeout(timeout, answered).await;
        match answered.map_err(|_elapsed| late())? {
            Ok(status) => match &*status {
                SubscriptionStatus::Refused(fault) => Err(fault.clone()),
                _ => Ok(Updates::guarded(versions, watcher)),
            },
            Err(_gone) => Err(Fault::Cancelled),
        }
    }

    /// A resource changed, or one below it.
    pub(crate) fn updated(&self, uri: &str) {
        let resources = lock(&self.resources);
        let below = || {
            let above = resources
                .iter()
                .filter(|(subscribed, _)| uri.starts_with(&***subscribed));
            above
                .max_by_key(|(subscribed, _)| subscribed.len())
                .map(|(_, resource)| resource)
        };
        if let Some(resource) = resources.get(uri).or_else(below) {
            resource.versions.send_modify(|version| *version += 1);
        }
    }

    /// The server accepted a subscription to `uri`. Earlier watchers may have missed an update, so
    /// they get one (TRANSLATION §5.9.6).
    pub(crate) fn granted(&self, uri: &str) {
        let resources = lock(&self.resources);
        let Some(resource) = resources.get(uri) else {
            return;
        };
        let before = resource.status.send_replace(SubscriptionStatus::Accepted);
        if matches!(before, SubscriptionStatus::Accepted) {
            resource.versions.send_modify(|version| *version += 1);
        }
    }

    /// The server refused or ended the subscription to `uri`: the updates of its watchers end.
    pub(crate) fn refused(&self, uri: &str, fault: Fault) {
        let Some(resource) = lock(&self.resources).remove(uri) else {
            return;
        };
        if resource.is_accepted() {
            tracing::warn!(uri, "the server ended the subscription to a resource");
        }
        resource
            .status
            .send_replace(SubscriptionStatus::Refused(fault));
    }

    /// The server could not be subscribed to `uri`: watchers that wait for the acceptance get `fault`.
    /// A subscription that was accepted before is kept, to be made again. Returns whether there is
    /// none.
    pub(crate) fn refuse_new(&self, uri: &str, fault: &Fault) -> bool {
        let mut resources = lock(&self.resources);
        let is_accepted = resources.get(uri).is_some_and(Resource::is_accepted);
        if !is_accepted && let Some(resource) = resources.remove(uri) {
            let refused = SubscriptionStatus::Refused(fault.clone());
            resource.status.send_replace(refused);
        }
        !is_accepted
    }

    /// The resources to subscribe to now, and when to call this again. Removes resources that have had
    /// no watchers for `linger`.
    pub(crate) fn wanted(&self, linger: Duration) -> (Vec<Arc<str>>, Option<Instant>) {
        let mut resources = lock(&self.resources);
        let now = Instant::now();
        let is_over = |resource: &Resource| {
            resource
                .idle_since
                .is_some_and(|since| since + linger <= now)
        };
        resources.retain(|_, resource| !is_over(resource));
        let next = resources
            .values()
            .filter_map(|resource| resource.idle_since);
        let next = next.min().map(|since| since + linger);
        let mut wanted: Vec<_> = resources.keys().cloned().collect();
        wanted.sort_unstable();
        (wanted, next)
    }

    /// Notifies when [`wanted`](Self::wanted) may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn join(&self, uri: &Arc<str>) -> (watch::Receiver<u64>, watch::Receiver<SubscriptionStatus>) {
        let mut resources = lock(&self.resources);
        let resource = resources.entry(Arc::clone(uri)).or_insert_with(|| {
            self.changes.send_replace(());
            Resource {
                versions: watch::Sender::new(0),
                status: watch::Sender::new(SubscriptionStatus::Pending),
                watchers: 0,
                idle_since: None,
            }
        });
        resource.watchers += 1;
        resource.idle_since = None;
        (resource.versions.subscribe(), resource.status.subscribe())
    }
}

/// Removes one watcher when it is dropped.
struct Watcher {
    subscriptions: Arc<ResourceSubscriptions>,
    uri: Arc<str>,
    versions: watch::Receiver<u64>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut resources = lock(&self.subscriptions.resources);
        // After a refusal, others may have begun anew; they do not count us.
        let ours = |resource: &&mut Resource| {
            let versions = resource.versions.subscribe();
            versions.same_channel(&self.versions)
        };
        let Some(resource) = resources.get_mut(&self.uri).filter(ours) else {
            return;
        };
        resource.watchers -= 1;
        if resource.watchers == 0 {
            resource.idle_since = Some(Instant::now());
            self.subscriptions.changes.send_replace(());
        }
    }
}
