//! A gateway that looks like one of the founding systems.

use std::sync::Arc;

use plexus_activations::Aliased;
use plexus_hub::Hub;
use plexus_service::{Boxed, Call, Catalogue, Fault, Outcome, Peer, Service, Updates};
use tokio::sync::watch;

/// Shows exactly what a founding system shows. A hub would declare lists that change, for members
/// come and go; calls still go through it, since its rules apply to them.
pub(super) struct Founding {
    hub: Hub,
    shown: Arc<Aliased>,
}

impl Founding {
    pub(super) fn new(hub: Hub, shown: Arc<Aliased>) -> Self {
        Self { hub, shown }
    }
}

impl Service for Founding {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.shown.catalogue()
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        self.hub.call(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.hub.subscribe(peer, uri)
    }
}
