//! Resources that somebody watches, whatever becomes of the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp::Fault;
use plexus_service::Updates;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lock::lock;

/// What is watched at one server, for however many watch it here. It outlives connections: each new
/// one takes the subscriptions up again.
#[derive(Default)]
pub(crate) struct Watched {
    resources: Mutex<HashMap<Arc<str>, Resource>>,
    changes: watch::Sender<()>,
}

struct Resource {
    versions: watch::Sender<u64>,
    standing: watch::Sender<Standing>,
    watchers: usize,
    /// Since when nobody watches it.
    idle_since: Option<Instant>,
}

/// How a subscription stands with the server.
#[derive(Debug, Clone)]
enum Standing {
    /// It is not answered yet.
    Asked,
    Granted,
    Refused(Fault),
}

impl Watched {
    /// One more watcher of `uri`. Whether the server lets it be watched is known within `patience`.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        uri: &str,
        patience: Duration,
    ) -> Result<Updates, Fault> {
        let uri: Arc<str> = uri.into();
        let (versions, mut standing) = self.join(&uri);
        let watcher = Watcher {
            watched: Arc::clone(self),
            uri,
            versions: versions.clone(),
        };
        let late = || Fault::Internal("the subscription was not answered in time".to_owned());
        let answered = standing.wait_for(|standing| !matches!(standing, Standing::Asked));
        let answered = tokio::time::timeout(patience, answered).await;
        match answered.map_err(|_elapsed| late())? {
            Ok(standing) => match &*standing {
                Standing::Refused(fault) => Err(fault.clone()),
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
                .filter(|(watched, _)| uri.starts_with(&***watched));
            above
                .max_by_key(|(watched, _)| watched.len())
                .map(|(_, resource)| resource)
        };
        if let Some(resource) = resources.get(uri).or_else(below) {
            resource.versions.send_modify(|version| *version += 1);
        }
    }

    /// The server lets `uri` be watched. Whoever watched it before may have missed something, which
    /// counts as having happened (TRANSLATION §5.9.6).
    pub(crate) fn granted(&self, uri: &str) {
        let resources = lock(&self.resources);
        let Some(resource) = resources.get(uri) else {
            return;
        };
        let before = resource.standing.send_replace(Standing::Granted);
        if matches!(before, Standing::Granted) {
            resource.versions.send_modify(|version| *version += 1);
        }
    }

    /// The server does not let `uri` be watched, or not any more: its watchers see the end.
    pub(crate) fn refused(&self, uri: &str, fault: Fault) {
        if let Some(resource) = lock(&self.resources).remove(uri) {
            resource.standing.send_replace(Standing::Refused(fault));
        }
    }

    /// What is to be watched now. Lets go of what nobody has watched for `linger`, and tells when to
    /// look again for that.
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

    /// Tells when something else may be wanted.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn join(&self, uri: &Arc<str>) -> (watch::Receiver<u64>, watch::Receiver<Standing>) {
        let mut resources = lock(&self.resources);
        let resource = resources.entry(Arc::clone(uri)).or_insert_with(|| {
            self.changes.send_replace(());
            Resource {
                versions: watch::Sender::new(0),
                standing: watch::Sender::new(Standing::Asked),
                watchers: 0,
                idle_since: None,
            }
        });
        resource.watchers += 1;
        resource.idle_since = None;
        (resource.versions.subscribe(), resource.standing.subscribe())
    }
}

/// Ends one watcher's interest.
struct Watcher {
    watched: Arc<Watched>,
    uri: Arc<str>,
    versions: watch::Receiver<u64>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut resources = lock(&self.watched.resources);
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
            self.watched.changes.send_replace(());
        }
    }
}
