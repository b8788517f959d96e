//! `subscriptions/listen`: change notifications of the stateless era.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use plexus_mcp_core::{Catalogue, Changes, Peer, Updates};
use plexus_mcp_protocol::messages::{ServerCapabilities, SubscriptionFilter};
use plexus_mcp_protocol::{key, method};
use plexus_mcp_wire::{Id, Object, Raw};
use tokio::sync::watch;

use crate::edge::Edge;
use crate::encoder::{ResponseEncoder, json, notification};
use crate::exchange::Output;

/// One open subscription: an acknowledgement first, then the requested notifications, until the
/// client or the server ends it (SUB26).
pub(crate) struct Listen {
    edge: Arc<Edge>,
    encoder: Arc<ResponseEncoder>,
    id: Id,
    wanted: SubscriptionFilter,
    peer: Arc<Peer>,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    /// The catalogue as of the last notification.
    known: Arc<Catalogue>,
    acknowledged: bool,
    resources: SelectAll<BoxStream<'static, Arc<str>>>,
    /// Messages that are ready to be sent.
    queue: Vec<Bytes>,
}

impl Listen {
    pub(crate) fn new(
        edge: Arc<Edge>,
        encoder: Arc<ResponseEncoder>,
        id: Id,
        wanted: SubscriptionFilter,
        peer: Arc<Peer>,
    ) -> Self {
        let mut catalogue = edge.watch_catalogue_for(&peer);
        let known = Arc::clone(&catalogue.borrow_and_update());
        Self {
            edge,
            encoder,
            id,
            wanted,
            peer,
            catalogue,
            known,
            acknowledged: false,
            resources: SelectAll::new(),
            queue: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    pub(crate) async fn next(&mut self) -> Output {
        if !self.acknowledged {
            let honoured = self.subscribe().await;
            self.acknowledged = true;
            let mut params = Object::new();
            params.set("notifications", json(&honoured));
            self.wanted = honoured;
            return Output::Notification(self.tagged(method::SUBSCRIPTION_ACKNOWLEDGED, params));
        }
        loop {
            if let Some(message) = self.queue.pop() {
                return Output::Notification(message);
            }
            let shutdown = self.edge.shutdown.clone();
            tokio::select! {
                () = shutdown.cancelled() => return self.end(),
                changed = self.catalogue.changed() => match changed {
                    Ok(()) => self.catalogue_changed(),
                    // The service was dropped: no further changes can come.
                    Err(_) => return self.end(),
                },
                Some(uri) = self.resources.next() => {
                    let mut params = Object::new();
                    params.set("uri", json(&*uri));
                    let message = self.tagged(method::RESOURCE_UPDATED, params);
                    return Output::Notification(message);
                }
            }
        }
    }

    /// Subscribes to the part of the filter that the service supports, and returns that part (SUB26-03).
    /// If the future is dropped, the next call starts from the beginning.
    async fn subscribe(&mut self) -> SubscriptionFilter {
        self.resources.clear();
        let capabilities = &self.known.capabilities;
        let mut honoured = SubscriptionFilter {
            tools_list_changed: self.wanted.tools_list_changed
                && capabilities
                    .tools
                    .as_ref()
                    .is_some_and(|list| list.list_changed),
            prompts_list_changed: self.wanted.prompts_list_changed
                && capabilities
                    .prompts
                    .as_ref()
                    .is_some_and(|list| list.list_changed),
            resources_list_changed: self.wanted.resources_list_changed
                && capabilities
                    .resources
                    .as_ref()
                    .is_some_and(|list| list.list_changed),
            resource_subscriptions: Vec::new(),
        };
        if !can_watch_resources(capabilities) {
            return honoured;
        }
        let mut seen = HashSet::new();
        let wanted = self
            .wanted
            .resource_subscriptions
            .iter()
            .filter(|uri| seen.insert(*uri));
        // Resources beyond the limit are not acknowledged (SUB26-03).
        for uri in wanted.take(self.edge.options.max_resource_subscriptions) {
            // A service may answer many times without waiting: let other tasks run in between.
            tokio::task::yield_now().await;
            match self.edge.service.subscribe(&self.peer, uri).await {
                Ok(updates) => {
                    self.resources.push(named(updates, uri));
                    honoured.resource_subscriptions.push(uri.clone());
                }
                Err(fault) => tracing::debug!(%uri, %fault, "subscription not honoured"),
            }
        }
        honoured
    }

    fn catalogue_changed(&mut self) {
        let now = Arc::clone(&self.catalogue.borrow_and_update());
        let Changes {
            tools,
            resources,
            prompts,
        } = now.changes_since(&self.known);
        self.known = now;
        let told = [
            (
                tools && self.wanted.tools_list_changed,
                method::TOOLS_CHANGED,
            ),
            (
                resources && self.wanted.resources_list_changed,
                method::RESOURCES_CHANGED,
            ),
            (
                prompts && self.wanted.prompts_list_changed,
                method::PROMPTS_CHANGED,
            ),
        ];
        for (_, method) in told.into_iter().filter(|(told, _)| *told) {
            let message = self.tagged(method, Object::new());
            self.queue.push(message);
        }
    }

    /// SUB26-11: the listen request is answered, then nothing follows.
    fn end(&self) -> Output {
        let mut result = Object::new();
        result.set("_meta", self.subscription());
        Output::Answer(self.encoder.complete(&self.id, result.to_raw()))
    }

    /// SUB26-05: everything names the subscription it belongs to.
    fn tagged(&self, method: &str, mut params: Object) -> Bytes {
        params.set("_meta", self.subscription());
        notification(method, Some(&params.to_raw()))
    }

    fn subscription(&self) -> Raw {
        let mut meta = Object::new();
        meta.set(key::SUBSCRIPTION_ID, self.id.to_raw());
        meta.to_raw()
    }
}

fn can_watch_resources(capabilities: &ServerCapabilities) -> bool {
    capabilities
        .resources
        .as_ref()
        .is_some_and(|resources| resources.subscribe)
}

/// The URI, each time its resource was updated.
fn named(updates: Updates, uri: &str) -> BoxStream<'static, Arc<str>> {
    let uri: Arc<str> = uri.into();
    stream::unfold(updates, move |mut updates| {
        let uri = Arc::clone(&uri);
        async move { updates.next().await.map(|()| (uri, updates)) }
    })
    .boxed()
}
