//! `resources/subscribe` of legacy sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use plexus_mcp_core::{Fault, Outcome, Peer};
use plexus_mcp_protocol::messages::ResourceUriParams;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Object, Raw};
use tokio_util::task::AbortOnDropHandle;

use super::Session;
use crate::encoder::{json, notification};
use crate::lock::lock;

/// The resource subscriptions of a session. Dropping an entry ends the subscription.
#[derive(Default)]
pub(super) struct Subscriptions {
    watched: Mutex<BTreeMap<String, AbortOnDropHandle<()>>>,
}

impl Subscriptions {
    pub(super) fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, AbortOnDropHandle<()>>> {
        lock(&self.watched)
    }
}

/// The `uri` that `params` name.
pub(super) fn uri(params: Option<&Raw>) -> Result<String, Fault> {
    let params = params.ok_or_else(|| Fault::InvalidParams("uri is missing".to_owned()))?;
    let params: ResourceUriParams = params
        .decode()
        .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?;
    Ok(params.uri)
}

/// Subscribes, and notifies the client of updates from then on. A second subscription to the same
/// resource changes nothing.
pub(super) async fn subscribe(session: Arc<Session>, peer: Arc<Peer>, uri: String) -> Outcome {
    if session.subscriptions.lock().len() >= session.edge.options.max_resource_subscriptions {
        return Err(Fault::Busy(
            "the session watches too many resources already".to_owned(),
        ));
    }
    let mut updates = session.edge.service.subscribe(&peer, &uri).await?;
    let mut params = Object::new();
    params.set("uri", json(&uri));
    let message = notification(method::RESOURCE_UPDATED, Some(&params.to_raw()));
    // Holding the session itself would keep it alive for as long as it watches.
    let watching = Arc::downgrade(&session);
    let task = session.edge.tracker.spawn(async move {
        while updates.next().await.is_some() {
            let Some(session) = watching.upgrade() else {
                return;
            };
            session.sink.offer_change(message.clone());
        }
    });
    session
        .subscriptions
        .lock()
        .insert(uri, AbortOnDropHandle::new(task));
    Ok(Raw::empty_object())
}
