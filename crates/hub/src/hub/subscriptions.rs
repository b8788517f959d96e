//! Resource subscriptions that survive reconnects of the server.

use std::sync::{Arc, Weak};

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{Fault, Peer, Updates};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Hub, HubEvent, Inner};

/// A resource subscription of one peer.
struct Subscription {
    hub: Weak<Inner>,
    peer: Arc<Peer>,
    uri: String,
    versions: watch::Sender<u64>,
}

impl Hub {
    /// Subscribes to a resource until the returned [`Updates`] is dropped. The subscription
    /// survives reconnects of the owner.
    pub(super) async fn watch(self, peer: Arc<Peer>, uri: String) -> Result<Updates, Fault> {
        // Listen to events before subscribing, so that a lost connection is not missed.
        let events = self.events();
        let (owner, updates) = self.watch_once(&peer, &uri).await?;
        let (versions, receiver) = watch::channel(0);
        let subscription = Subscription {
            hub: Arc::downgrade(&self.inner),
            peer,
            uri,
            versions,
        };
        let over = CancellationToken::new();
        let keeping = Box::pin(subscription.keep(owner, updates, events));
        let until = over.clone().run_until_cancelled_owned(keeping);
        self.inner.tasks.spawn(until);
        Ok(Updates::guarded(receiver, over.drop_guard()))
    }

    async fn watch_once(&self, peer: &Arc<Peer>, uri: &str) -> Result<(Arc<str>, Updates), Fault> {
        let owner = self.routes().likely_resource(uri);
        let owner = owner.ok_or_else(|| Fault::ResourceNotFound(uri.to_owned()))?;
        let service = self.member(&owner.member)?.service()?;
        let updates = service.subscribe(peer, &owner.key).await?;
        Ok((owner.member, updates))
    }
}

impl Subscription {
    /// Forwards updates, and subscribes again on every new connection of the owner.
    async fn keep(
        self,
        mut owner: Arc<str>,
        updates: Updates,
        mut events: broadcast::Receiver<HubEvent>,
    ) {
        let mut updates = Some(updates);
        loop {
            let updated = async {
                match &mut updates {
                    Some(updates) => updates.next().await,
                    None => std::future::pending().await,
                }
            };
            let renewed = tokio::select! {
                updated = updated => {
                    if updated.is_none() {
                        updates = None;
                        continue;
                    }
                    false
                }
                event = events.recv() => match event {
                    Ok(event) if !concerns(&event, &owner) => continue,
                    Ok(_) | Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => return,
                },
            };
            if renewed {
                let Some(inner) = self.hub.upgrade() else {
                    return;
                };
                // The old subscription is dropped after the new one is made, so that on the same
                // connection the resource stays subscribed throughout.
                match (Hub { inner }).watch_once(&self.peer, &self.uri).await {
                    Ok((now, new)) => (owner, updates) = (now, Some(new)),
                    Err(error) => {
                        tracing::debug!(uri = self.uri, %error, "the subscription to a resource is lost for now");
                        continue;
                    }
                }
            }
            // Also after a reconnect: the resource may have changed while there was no connection.
            self.versions.send_modify(|version| *version += 1);
        }
    }
}

/// Whether `owner` has a new connection, or will have one.
fn concerns(event: &HubEvent, owner: &str) -> bool {
    match event {
        HubEvent::Status {
            name,
            enabled: true,
            status: Some(status),
        } => **name == *owner && status.state == ServerState::Connected,
        HubEvent::Members(changes) => {
            let mut new = changes.updated.iter().chain(&changes.added);
            new.any(|name| name == owner)
        }
        HubEvent::Status { .. } | HubEvent::Catalogue { .. } => false,
    }
}
