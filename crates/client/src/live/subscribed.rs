//! Keeps a handshake server's subscriptions as they are wanted.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plexus_mcp::{Fault, method};
use plexus_service::Boxed;
use plexus_wire::{Object, Raw};
use tokio::time::{sleep_until, timeout};

use super::Live;
use crate::link::Headers;
use crate::rpc::{RpcFailure, Traits};
use crate::stamp;

/// What became of a request about a resource.
enum Done {
    Subscribed(Result<(), RpcFailure>),
    Unsubscribed,
}

impl Live {
    /// Subscribes to what is watched, and unsubscribes from what no longer is. Each resource has at
    /// most one request under way, lest one overtake the other.
    pub(super) async fn keep_subscribed(self: Arc<Self>) {
        let linger = self.definition.timeouts.linger;
        let mut changes = self.watched.changes();
        let mut subscribed: HashSet<Arc<str>> = HashSet::new();
        let mut busy: HashSet<Arc<str>> = HashSet::new();
        let mut requests: FuturesUnordered<Boxed<(Arc<str>, Done)>> = FuturesUnordered::new();
        loop {
            let (wanted, next) = self.watched.wanted(linger);
            let wanted: HashSet<_> = wanted.into_iter().collect();
            for uri in wanted.symmetric_difference(&subscribed.clone()) {
                if !busy.insert(Arc::clone(uri)) {
                    continue;
                }
                let live = Arc::clone(&self);
                let uri = Arc::clone(uri);
                if subscribed.remove(&uri) {
                    requests.push(Box::pin(async move {
                        // Whatever it answers, we no longer listen.
                        drop(live.about(method::RESOURCES_UNSUBSCRIBE, &uri).await);
                        (uri, Done::Unsubscribed)
                    }));
                } else {
                    subscribed.insert(Arc::clone(&uri));
                    requests.push(Box::pin(async move {
                        let answer = live.about(method::RESOURCES_SUBSCRIBE, &uri).await;
                        (uri, Done::Subscribed(answer))
                    }));
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                Some((uri, done)) = requests.next() => {
                    busy.remove(&uri);
                    match done {
                        Done::Subscribed(Ok(())) => self.watched.granted(&uri),
                        // Another connection will take it up.
                        Done::Subscribed(Err(_)) if self.own.rpc.is_over() => return,
                        Done::Subscribed(Err(failure)) => {
                            subscribed.remove(&uri);
                            self.watched.refused(&uri, Self::fault(failure));
                        }
                        Done::Unsubscribed => {}
                    }
                }
                () = sleep_until(next.unwrap_or_else(super::far_away)), if next.is_some() => {}
            }
        }
    }

    async fn about(&self, method: &'static str, uri: &str) -> Result<(), RpcFailure> {
        let mut params = Object::new();
        params.set("uri", stamp::json(uri));
        let params: Raw = params.to_raw();
        let rpc = &self.own.rpc;
        let request = rpc.request(method, Some(params), Headers::new(), Traits::default());
        let answer = async { request.await?.answer().await };
        let patience = self.definition.timeouts.request;
        match timeout(patience, answer).await {
            Ok(answer) => answer.map(drop),
            Err(_elapsed) => Err(RpcFailure::late(method, patience)),
        }
    }

    /// That the server has resources to watch.
    pub(crate) fn offers_subscriptions(&self) -> Result<(), Fault> {
        let resources = self.facts.capabilities.resources.as_ref();
        if resources.is_some_and(|resources| resources.subscribe) {
            return Ok(());
        }
        let method = method::RESOURCES_SUBSCRIBE.to_owned();
        Err(Fault::MethodNotFound(method))
    }
}
