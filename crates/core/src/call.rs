//! One call, as every service sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use plexus_mcp_protocol::Fault;
use plexus_mcp_wire::{Object, Raw};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::event::EventSender;
use crate::peer::Peer;

/// How a call ends: the result object in its newest form, without what belongs to one hop
/// (`resultType`, the server's identity), or the reason why there is none.
pub type Outcome = Result<Raw, Fault>;

/// A future that a service hands out.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Something that answers MCP calls: functions in this process, an upstream server, or a hub of many.
///
/// A service is independent of revisions and transports. The server edge exposes it to clients.
pub trait Service: Send + Sync + 'static {
    /// A watch channel with the current catalogue. Every change sends a new one.
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>>;

    /// The catalogue for `peer`, if it differs from [`Service::catalogue`].
    fn catalogue_for(&self, _peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        None
    }

    /// While the catalogue is known to be incomplete, a future that ends when it is complete, or when
    /// no list is to wait for that any longer. Edges wait for it before they answer a list, because
    /// many clients list once and never again.
    fn settling(&self) -> Option<Boxed<()>> {
        None
    }

    /// The same for a list of `peer`. A part of its catalogue may be unknown that depends on its
    /// capabilities.
    fn settling_for(&self, _peer: &Arc<Peer>) -> Option<Boxed<()>> {
        self.settling()
    }

    /// Carries out a call. Dropping the future abandons the call.
    fn call(&self, call: Call) -> Boxed<Outcome>;

    /// Watches a resource until the returned [`Updates`] is dropped.
    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>>;
}

/// A request to a service.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call {
    /// The method, `tools/call` and the like.
    pub method: Box<str>,
    /// The parameters, parsed once. Their `_meta` still holds the hop metadata of the incoming
    /// request; a service that forwards the call replaces it.
    pub params: Object,
    /// The channel for the call's events. It also holds the caller.
    pub events: EventSender,
    /// Fires when the caller cancels the call.
    pub cancel: CancellationToken,
}

impl Call {
    /// A call of `method` with `params`.
    pub fn new(
        method: &str,
        params: Object,
        events: EventSender,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            method: method.into(),
            params,
            events,
            cancel,
        }
    }

    /// The caller.
    pub fn peer(&self) -> &Arc<Peer> {
        self.events.peer()
    }
}

/// Updates of one resource. Updates that arrive before the previous one was taken are coalesced.
pub struct Updates {
    versions: watch::Receiver<u64>,
    /// Ends the subscription at its source when dropped.
    _guard: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Updates {
    /// Updates whose source increments a version.
    pub fn new(versions: watch::Receiver<u64>) -> Self {
        Self {
            versions,
            _guard: None,
        }
    }

    /// As [`Self::new`], with a guard that is dropped when the subscription ends, to notify its source.
    pub fn guarded(
        versions: watch::Receiver<u64>,
        guard: impl std::any::Any + Send + Sync,
    ) -> Self {
        Self {
            versions,
            _guard: Some(Box::new(guard)),
        }
    }

    /// Waits for the next update; `None` when there will be none.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<()> {
        self.versions.changed().await.ok()
    }
}

impl std::fmt::Debug for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updates")
            .field("versions", &self.versions)
            .finish_non_exhaustive()
    }
}
