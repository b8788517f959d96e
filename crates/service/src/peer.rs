//! Who is calling.

use std::sync::Arc;

use plexus_mcp::Revision;
use plexus_mcp::messages::{ClientCapabilities, ClientCapability};
use plexus_wire::Raw;

/// On whose behalf a call is made, from verified credentials only: never from what a client says
/// of itself, its address or its connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A caller known by `name`, which names no one else.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The caller of a channel that asks for no credentials.
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The other end of a call: what it is and what it can do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// The client's own words about itself, for display only (META26-06).
    pub client_info: Option<Raw>,
    /// What the client declared it can do.
    pub capabilities: ClientCapabilities,
    /// On whose behalf it calls.
    pub principal: Principal,
    /// The revision it speaks. Services have no use for it; it is here for logs and for relays.
    pub revision: Revision,
}

impl Peer {
    /// A peer of `revision` that declared `capabilities`.
    pub fn new(
        revision: Revision,
        capabilities: ClientCapabilities,
        client_info: Option<Raw>,
        principal: Principal,
    ) -> Self {
        Self {
            client_info,
            capabilities,
            principal,
            revision,
        }
    }

    /// Whether the peer declared `capability`.
    pub fn supports(&self, capability: ClientCapability) -> bool {
        capability.declared_in(&self.capabilities)
    }
}
