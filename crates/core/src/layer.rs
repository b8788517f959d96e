//! Middleware: one place to wrap the calls of a service.

use std::sync::Arc;

use plexus_mcp_protocol::Fault;
use tokio::sync::watch;

use crate::call::{Boxed, Call, Outcome, Service, Updates};
use crate::catalogue::Catalogue;
use crate::peer::Peer;

/// Middleware around a [`Service`]: tracing spans, counters, access logs, limits, audit.
///
/// A layer sees every call before the service does and its outcome afterwards. It may change the
/// call, refuse it without passing it on, or replace the outcome. The catalogue passes through
/// unchanged.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use plexus_mcp_core::{Boxed, Call, Layer, Layered, LocalService, Outcome, Service};
///
/// struct CountCalls(AtomicU64);
///
/// impl Layer for CountCalls {
///     fn call(&self, call: Call, next: &Arc<dyn Service>) -> Boxed<Outcome> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         next.call(call)
///     }
/// }
///
/// let service = LocalService::builder("empty", "1.0.0").build()?;
/// let counted = Layered::new(Arc::new(service), CountCalls(AtomicU64::new(0)));
/// # let _: &dyn Service = &counted;
/// # Ok::<(), plexus_mcp_core::BuildError>(())
/// ```
pub trait Layer: Send + Sync + 'static {
    /// Carries out a call, usually by way of `next`. Dropping the future abandons the call.
    fn call(&self, call: Call, next: &Arc<dyn Service>) -> Boxed<Outcome>;

    /// Subscribes to a resource, usually by way of `next`.
    fn subscribe(
        &self,
        peer: &Arc<Peer>,
        uri: &str,
        next: &Arc<dyn Service>,
    ) -> Boxed<Result<Updates, Fault>> {
        next.subscribe(peer, uri)
    }
}

/// A service with a [`Layer`] around it. To use several layers, nest this type; the outermost layer
/// sees a call first.
pub struct Layered<L> {
    inner: Arc<dyn Service>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Wraps `inner` in `layer`.
    pub fn new(inner: Arc<dyn Service>, layer: L) -> Self {
        Self { inner, layer }
    }
}

impl<L: Layer> Service for Layered<L> {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        self.inner.catalogue_for(peer)
    }

    fn settling(&self) -> Option<Boxed<()>> {
        self.inner.settling()
    }

    fn settling_for(&self, peer: &Arc<Peer>) -> Option<Boxed<()>> {
        self.inner.settling_for(peer)
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        self.layer.call(call, &self.inner)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.layer.subscribe(peer, uri, &self.inner)
    }
}

impl<L> std::fmt::Debug for Layered<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layered").finish_non_exhaustive()
    }
}
