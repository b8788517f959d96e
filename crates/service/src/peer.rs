//! Who is calling.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plexus_mcp::Revision;
use plexus_mcp::messages::{ClientCapabilities, ClientCapability};
use plexus_wire::Raw;
use tokio::sync::Notify;

use crate::credential::Credentials;

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

/// What a caller's credentials allow, in the words of whoever issued them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Arc<BTreeSet<Box<str>>>);

impl Scopes {
    /// Whether `scope` is one of them.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl<'a> FromIterator<&'a str> for Scopes {
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        Self(Arc::new(scopes.into_iter().map(Into::into).collect()))
    }
}

/// That a caller stays there between its calls. It ends once, for good.
///
/// What a caller sets up for later lasts as long as its presence. Clones are the same presence.
#[derive(Debug, Clone, Default)]
pub struct Presence(Arc<Stay>);

#[derive(Debug, Default)]
struct Stay {
    is_over: AtomicBool,
    ended: Notify,
}

impl Presence {
    /// Of a caller that has just come.
    pub fn new() -> Self {
        Self::default()
    }

    /// The caller is gone.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }

    /// Whether the caller is gone.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    /// Waits until the caller is gone.
    pub async fn over(&self) {
        // Made before looking, it is told of an end that comes in between.
        let ended = self.0.ended.notified();
        if !self.is_over() {
            ended.await;
        }
    }
}

impl PartialEq for Presence {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Presence {}

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
    /// What its credentials allow; `None` if it was asked for none, as on a pipe.
    pub scopes: Option<Scopes>,
    /// The revision it speaks. Services have no use for it; it is here for logs and for relays.
    pub revision: Revision,
    /// That it is still there; `None` if nothing joins its calls, as each stands alone.
    pub presence: Option<Presence>,
    /// What it was let in with, for upstream servers that are to know whom we act for.
    pub credentials: Credentials,
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
            scopes: None,
            revision,
            presence: None,
            credentials: Credentials::default(),
        }
    }

    /// The same, which stays there between its calls.
    #[must_use]
    pub fn present(mut self, presence: Presence) -> Self {
        self.presence = Some(presence);
        self
    }

    /// The same, with credentials that allow this.
    #[must_use]
    pub fn holding(mut self, scopes: Option<Scopes>) -> Self {
        self.scopes = scopes;
        self
    }

    /// Whether the peer declared `capability`.
    pub fn supports(&self, capability: ClientCapability) -> bool {
        capability.declared_in(&self.capabilities)
    }
}
