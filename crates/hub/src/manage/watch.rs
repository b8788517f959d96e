//! Subscriptions to resources whose servers send update notifications.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_core::{Context, Fault, Json, Peer, ToolError, ToolResult, Updates};

use super::arguments::{SubscribeArguments, Subscribed};
use super::registry::SubscriptionRegistry;
use super::subscription::{ManagedSubscription, Target, Thing};
use crate::hub::Hub;

/// Delay before a lost subscription is renewed; doubles after each attempt.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);
/// How often a renewal is attempted.
const MAX_RESUBSCRIBE_ATTEMPTS: u32 = 5;

pub(super) async fn subscribe(
    registry: Arc<SubscriptionRegistry>,
    SubscribeArguments {
        server,
        uri,
        reason,
    }: SubscribeArguments,
    context: Context,
) -> ToolResult<Json<Subscribed>> {
    let hub = registry.hub()?;
    let peer = Arc::clone(context.events().peer());
    let member = hub.server(&server)?;
    let target = Target {
        server: member.name.to_string(),
        thing: Thing::Resource {
            uri: hub.own_uri(&server, &uri),
        },
        interval_ms: None,
    };
    let id = if let Some(id) = registry.existing(&peer, &target) {
        id
    } else {
        registry.has_room(&peer)?;
        let updates = watched(&hub, &peer, &target).await?;
        let watching = Watching {
            registry: Arc::downgrade(&registry),
            peer: Arc::clone(&peer),
            updates,
        };
        registry.keep(&peer, target, reason, |subscription| {
            watching.run(subscription)
        })?
    };
    Ok(Json(Subscribed {
        subscribed: true,
        subscription_id: id,
    }))
}

/// Subscribes to the resource.
async fn watched(hub: &Hub, peer: &Arc<Peer>, target: &Target) -> Result<Updates, ToolError> {
    let member = hub.server(&target.server)?;
    let service = member.service().map_err(ToolError::failed)?;
    let subscribed = service.subscribe(peer, target.name()).await;
    subscribed.map_err(|fault| {
        let why = match fault {
            Fault::MethodNotFound(_) => {
                "it sends no update notifications; use SubscribePolling".to_owned()
            }
            other => other.to_string(),
        };
        ToolError::Failed(format!(
            "the server {:?} does not watch {:?}: {why}",
            target.server,
            target.name()
        ))
    })
}

struct Watching {
    registry: std::sync::Weak<SubscriptionRegistry>,
    peer: Arc<Peer>,
    updates: Updates,
}

impl Watching {
    /// Records every change until the server ends the subscription; returns why it ended.
    async fn run(mut self, subscription: Arc<ManagedSubscription>) -> String {
        loop {
            while self.updates.next().await.is_some() {
                subscription.changed(None);
            }
            match self.again(&subscription.target).await {
                Ok(updates) => self.updates = updates,
                Err(why) => return why,
            }
            // The resource may have changed while it was not subscribed.
            subscription.changed(None);
        }
    }

    async fn again(&self, target: &Target) -> Result<Updates, String> {
        let mut pause = RESUBSCRIBE_DELAY;
        let mut why = String::new();
        for _ in 0..MAX_RESUBSCRIBE_ATTEMPTS {
            tokio::time::sleep(pause).await;
            pause *= 2;
            let hub = self
                .registry
                .upgrade()
                .and_then(|registry| registry.hub().ok());
            let hub = hub.ok_or("the hub is gone")?;
            match watched(&hub, &self.peer, target).await {
                Ok(updates) => return Ok(updates),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}
