//! Resources whose servers say when they change.

use std::sync::Arc;
use std::time::Duration;

use plexus_service::{Context, Fault, Json, Peer, ToolError, ToolResult, Updates};

use super::arguments::{SubscribeArguments, Subscribed};
use super::desk::Desk;
use super::subscription::{Subscription, Target, Thing};
use crate::hub::Hub;

/// How long a lost subscription waits before it is taken up again; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is tried.
const TRIES: u32 = 5;

pub(super) async fn subscribe(
    desk: Arc<Desk>,
    SubscribeArguments {
        server,
        uri,
        reason,
    }: SubscribeArguments,
    context: Context,
) -> ToolResult<Json<Subscribed>> {
    let hub = desk.hub()?;
    let peer = Arc::clone(context.events().peer());
    let member = hub.server(&server)?;
    let target = Target {
        server: member.name.to_string(),
        thing: Thing::Resource {
            uri: hub.own_uri(&server, &uri),
        },
        interval_ms: None,
    };
    let id = if let Some(id) = desk.existing(&peer, &target) {
        id
    } else {
        desk.has_room(&peer)?;
        let updates = watched(&hub, &peer, &target).await?;
        let watching = Watching {
            desk: Arc::downgrade(&desk),
            peer: Arc::clone(&peer),
            updates,
        };
        desk.keep(&peer, target, reason, |subscription| {
            watching.run(subscription)
        })?
    };
    Ok(Json(Subscribed {
        subscribed: true,
        subscription_id: id,
    }))
}

/// The updates of a resource.
async fn watched(hub: &Hub, peer: &Arc<Peer>, target: &Target) -> Result<Updates, ToolError> {
    let member = hub.server(&target.server)?;
    let service = member.ready().await.map_err(ToolError::failed)?;
    let subscribed = service.subscribe(peer, target.name()).await;
    subscribed.map_err(|fault| {
        let why = match fault {
            Fault::MethodNotFound(_) => {
                "it does not say when its resources change; use SubscribePolling".to_owned()
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
    desk: std::sync::Weak<Desk>,
    peer: Arc<Peer>,
    updates: Updates,
}

impl Watching {
    /// Takes note of every change, until the server no longer tells; says why it does not.
    async fn run(mut self, subscription: Arc<Subscription>) -> String {
        loop {
            while self.updates.next().await.is_some() {
                subscription.changed(None);
            }
            match self.again(&subscription.target).await {
                Ok(updates) => self.updates = updates,
                Err(why) => return why,
            }
            // It may have changed while nobody was told.
            subscription.changed(None);
        }
    }

    async fn again(&self, target: &Target) -> Result<Updates, String> {
        let mut pause = PAUSE;
        let mut why = String::new();
        for _ in 0..TRIES {
            tokio::time::sleep(pause).await;
            pause *= 2;
            let hub = self.desk.upgrade().and_then(|desk| desk.hub().ok());
            let hub = hub.ok_or("the hub is gone")?;
            match watched(&hub, &self.peer, target).await {
                Ok(updates) => return Ok(updates),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}
