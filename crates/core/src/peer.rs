//! The caller of a service: its principal, scopes, presence and capabilities.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::{ClientCapabilities, ClientCapability};
use plexus_mcp_wire::Raw;
use tokio::sync::Notify;

use crate::credential::Credentials;

/// The identity of a caller. It comes from verified credentials only, never from the client's
/// description of itself, its address or its connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The principal with this name, which must be unique to it.
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

/// The OAuth scopes of a caller's credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
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

/// The lifetime of a caller that stays connected between its calls. It ends once.
///
/// State that a caller sets up for later lasts as long as its presence. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Presence(Arc<Stay>);

#[derive(Debug, Default)]
struct Stay {
    is_over: AtomicBool,
    ended: Notify,
}

impl Presence {
    /// The presence of a new caller.
    pub fn new() -> Self {
        Self::default()
    }

    /// A number that no other presence has while this one exists.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Marks the caller as disconnected.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }

    /// Whether the caller has disconnected.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    /// Waits until the caller has disconnected.
    pub async fn over(&self) {
        // Created before the check, so that an end in between is not missed.
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

/// The caller of a service: its identity and capabilities.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// How the client describes itself, for display only (META26-06).
    pub client_info: Option<Raw>,
    /// The capabilities that the client declared.
    pub capabilities: ClientCapabilities,
    /// The identity that it calls as.
    pub principal: Principal,
    /// The scopes of its credentials; `None` if none were required, as on stdio.
    pub scopes: Option<Scopes>,
    /// The revision it speaks, for logs and relays only.
    pub revision: Revision,
    /// Its presence; `None` for stateless calls, which are not related to each other.
    pub presence: Option<Presence>,
    /// Its credentials, for upstream servers that are called on behalf of the caller.
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

    /// The same, with a presence.
    #[must_use]
    pub fn present(mut self, presence: Presence) -> Self {
        self.presence = Some(presence);
        self
    }

    /// The same, with these scopes.
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
