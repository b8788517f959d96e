//! One call, as every service sees it.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use plexus_mcp::{Fault, method};
use plexus_wire::{Object, Raw};
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

/// Something that answers MCP calls: an activation, an upstream server, or a hub of many.
///
/// A service knows nothing of revisions and transports. Edges show it to clients.
pub trait Service: Send + Sync + 'static {
    /// What the service offers, now and after every change.
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>>;

    /// What `peer` is shown of it, if that is not what everybody is shown.
    fn catalogue_for(&self, _peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        None
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
    pub method: Cow<'static, str>,
    /// The parameters, taken apart once for everybody on the way. Their `_meta` still holds what
    /// belongs to the hop they came by; whoever sends them on replaces that.
    pub params: Object,
    /// Where events go, and who is calling.
    pub events: EventSender,
    /// Fires when the caller no longer wants the answer.
    pub cancel: CancellationToken,
    /// W3C trace context of the caller.
    pub trace_parent: Option<String>,
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
            method: method::named(method),
            params,
            events,
            cancel,
            trace_parent: None,
        }
    }

    /// Who is calling.
    pub fn peer(&self) -> &Arc<Peer> {
        self.events.peer()
    }
}

/// Updates of one resource. Several that come faster than they are taken count as one.
pub struct Updates {
    versions: watch::Receiver<u64>,
    /// Ends the subscription at its source when dropped.
    _guard: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Updates {
    /// Updates whose source counts a version up.
    pub fn new(versions: watch::Receiver<u64>) -> Self {
        Self {
            versions,
            _guard: None,
        }
    }

    /// The same, with a guard whose drop tells the source that nobody watches any more.
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
