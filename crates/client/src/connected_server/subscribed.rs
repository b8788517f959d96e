//! Subscribes to resources of a handshake server, and unsubscribes.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plexus_mcp_core::Boxed;
use plexus_mcp_protocol::{Fault, method};
use plexus_mcp_wire::{Object, Raw};
use tokio::time::{sleep, sleep_until, timeout};

use super::ConnectedServer;
use super::listening::{RESUME_BACKOFF_MAX, RESUME_BACKOFF_MIN};
use super::session_check::SessionCheck;
use crate::backoff::{self, Backoff};
use crate::hop_metadata;
use crate::link::{Headers, LinkError};
use crate::rpc::{RpcFailure, Traits};

/// What became of a subscription.
enum Done {
    Subscribed,
    /// The server refused it, or it has no more watchers.
    NotSubscribed,
    Unsubscribed,
    /// The connection has ended, or the server has lost the session. Another connection will take the
    /// subscription up.
    Over,
}

impl ConnectedServer {
    /// Subscribes to resources that have watchers, and unsubscribes from those that have none. Each
    /// resource has at most one request in flight, so that requests do not overtake each other.
    pub(super) async fn keep_subscribed(self: Arc<Self>) {
        let linger = self.definition.timeouts.linger;
        let mut changes = self.subscriptions.changes();
        let mut subscribed: HashSet<Arc<str>> = HashSet::new();
        let mut busy: HashSet<Arc<str>> = HashSet::new();
        let mut requests: FuturesUnordered<Boxed<(Arc<str>, Done)>> = FuturesUnordered::new();
        loop {
            let (wanted, next) = self.subscriptions.wanted(linger);
            let wanted: HashSet<_> = wanted.into_iter().collect();
            for uri in wanted.symmetric_difference(&subscribed.clone()) {
                if !busy.insert(Arc::clone(uri)) {
                    continue;
                }
                let server = Arc::clone(&self);
                let uri = Arc::clone(uri);
                if subscribed.remove(&uri) {
                    requests.push(Box::pin(async move {
                        // The answer is ignored: updates of this resource are no longer forwarded.
                        drop(server.about(method::RESOURCES_UNSUBSCRIBE, &uri).await);
                        (uri, Done::Unsubscribed)
                    }));
                } else {
                    subscribed.insert(Arc::clone(&uri));
                    requests.push(Box::pin(async move {
                        let done = server.subscribe(&uri).await;
                        (uri, done)
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
                        Done::Subscribed => self.subscriptions.granted(&uri),
                        Done::NotSubscribed => drop(subscribed.remove(&uri)),
                        Done::Unsubscribed => {}
                        Done::Over => return,
                    }
                }
                () = sleep_until(next.unwrap_or_else(super::far_future)), if next.is_some() => {}
            }
        }
    }

    /// Subscribes to a resource. If the server had accepted the subscription before, for example on an
    /// earlier connection, it is attempted until it succeeds or has no more watchers.
    async fn subscribe(&self, uri: &str) -> Done {
        let mut backoff = Backoff::new(RESUME_BACKOFF_MIN, RESUME_BACKOFF_MAX);
        loop {
            let failure = match self.about(method::RESOURCES_SUBSCRIBE, uri).await {
                Ok(()) => return Done::Subscribed,
                Err(_) if self.own.rpc.is_over() => return Done::Over,
                Err(failure) => failure,
            };
            if failure == RpcFailure::Link(LinkError::SessionLost)
                && self.check_session().await == SessionCheck::Lost
            {
                return Done::Over;
            }
            let fault = Self::fault(failure);
            if self.subscriptions.refuse_new(uri, &fault) {
                return Done::NotSubscribed;
            }
            tracing::warn!(uri, %fault, "the updates of a resource are interrupted");
            sleep(backoff.next_delay(backoff::random())).await;
        }
    }

    async fn about(&self, method: &'static str, uri: &str) -> Result<(), RpcFailure> {
        let mut params = Object::new();
        params.set("uri", hop_metadata::json(uri));
        let params: Raw = params.to_raw();
        let rpc = &self.own.rpc;
        let request = rpc.request(method, Some(params), Headers::new(), Traits::default());
        let answer = async { request.await?.answer().await };
        let request_timeout = self.definition.timeouts.request;
        match timeout(request_timeout, answer).await {
            Ok(answer) => answer.map(drop),
            Err(_elapsed) => Err(RpcFailure::late(method, request_timeout)),
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
