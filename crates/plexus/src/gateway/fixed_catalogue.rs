//! A gateway that shows the fixed catalogue of an older system (`--profile ghost` or `bossman`).

use std::sync::Arc;

use plexus_mcp_builtins::AliasedService;
use plexus_mcp_core::{Boxed, Call, Catalogue, Fault, Outcome, Peer, Service, Updates};
use plexus_mcp_hub::Hub;
use tokio::sync::watch;

/// Shows exactly the catalogue of the profile. A hub would declare `listChanged`, since members
/// are added and removed. Calls still go through the hub, because its policy applies to them.
pub(super) struct FixedCatalogue {
    hub: Hub,
    shown: Arc<AliasedService>,
}

impl FixedCatalogue {
    pub(super) fn new(hub: Hub, shown: Arc<AliasedService>) -> Self {
        Self { hub, shown }
    }
}

impl Service for FixedCatalogue {
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
