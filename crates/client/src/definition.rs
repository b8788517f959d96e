//! What is to be connected to, and how.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Uri};
use plexus_mcp::Era;
use plexus_mcp::messages::{ClientCapabilities, Implementation};
use plexus_service::Peer;
use plexus_wire::Limits;

use crate::asks::Asks;
use crate::auth::{AuthError, Authorizer, Identities, OwnIdentity};
use crate::child::Program;

/// One MCP server, as somebody configured it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Definition {
    /// Where it is.
    pub target: Target,
    /// The era it is known to speak; `None` to find out.
    pub era: Option<Era>,
    /// What a legacy server is told that its client can do. A stateless one is told with every
    /// request what that request's caller can do.
    pub capabilities: ClientCapabilities,
    /// Who we say we are.
    pub client_info: Implementation,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Calls go out one after the other, for servers that cannot take several (C32).
    pub serialize: bool,
    /// What a message of the server may be like.
    pub limits: Limits,
    /// How much a list may hold.
    pub max_listed: usize,
    /// Who shares a session with whom, if the server is of the handshake era.
    pub affinity: Affinity,
    /// The caller is asked for its roots before its first call, for servers that want to know them
    /// outside of any call (TRANSLATION §5.10).
    pub prime_roots: bool,
    /// Whether it asks its callers anything; learnt while it is connected, and known from then on.
    pub asks: Asks,
}

impl Definition {
    /// A server at `target`, with defaults for all else.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            era: None,
            capabilities: ClientCapabilities::none(),
            client_info: Implementation::new("plexus", env!("CARGO_PKG_VERSION")),
            timeouts: Timeouts::default(),
            serialize: false,
            limits: Limits {
                max_bytes: 16 * 1024 * 1024,
                ..Limits::default()
            },
            max_listed: 20_000,
            affinity: Affinity::Shared,
            prime_roots: false,
            asks: Asks::default(),
        }
    }

    /// The same for callers who are clients of ours, each with capabilities of its own.
    ///
    /// A session of a handshake server is told once what its client can do. Over HTTP, where a
    /// session costs little, clients that differ get one each. A program is started once: it is told
    /// that its clients can do everything, and is refused what the caller at hand cannot.
    #[must_use]
    pub fn for_clients(mut self) -> Self {
        self.capabilities = ClientCapabilities::everything();
        self.affinity = match self.target {
            Target::Stdio(_) => Affinity::Shared,
            Target::Http(_) | Target::Sse(_) => Affinity::Principal,
        };
        self
    }

    /// Who has what the server wants to see, if anybody.
    pub(crate) fn authorizer(&self) -> Option<&Arc<dyn Authorizer>> {
        match &self.target {
            Target::Http(target) | Target::Sse(target) => target.authorizer.as_ref(),
            Target::Stdio(_) => None,
        }
    }

    /// What the calls of `peer` carry, if it is not what everybody's do.
    pub(crate) fn identity(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError> {
        let (Target::Http(target) | Target::Sse(target)) = &self.target else {
            return Ok(None);
        };
        match &target.identities {
            Some(identities) => identities.of(peer),
            None => Ok(None),
        }
    }

    /// The same for the session of callers who can do this, with what they carry.
    pub(crate) fn of_sharers(
        &self,
        era: Era,
        capabilities: ClientCapabilities,
        identity: Option<&OwnIdentity>,
    ) -> Self {
        let mut own = Self {
            capabilities,
            affinity: Affinity::Shared,
            era: Some(era),
            ..self.clone()
        };
        if let Some(identity) = identity
            && let Target::Http(target) | Target::Sse(target) = &mut own.target
        {
            target.authorizer = Some(Arc::clone(&identity.authorizer));
        }
        own
    }
}

/// Who shares a session of a server of the handshake era, which a stateless server has none of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever reads a setting must consider every value"
)]
pub enum Affinity {
    /// All callers.
    Shared,
    /// Callers of one principal that can do the same.
    Principal,
}

/// Where a server is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A program that speaks on its standard input and output.
    Stdio(Program),
    /// An address that is to be tried with Streamable HTTP first, then with HTTP+SSE (C22).
    Http(HttpTarget),
    /// An address that speaks HTTP+SSE of 2024-11-05.
    Sse(HttpTarget),
}

/// An address, and what goes with every request to it.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpTarget {
    /// The MCP endpoint.
    pub url: Uri,
    /// Sent with every request; may hold credentials.
    pub headers: HeaderMap,
    /// Has or gets what a server wants to see that asks for authorization.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Gives callers credentials of their own, where the server is used in their names. The others
    /// are for its lists then.
    pub identities: Option<Arc<dyn Identities>>,
}

impl HttpTarget {
    /// The endpoint at `url`.
    pub fn new(url: Uri) -> Self {
        Self {
            url,
            headers: HeaderMap::new(),
            authorizer: None,
            identities: None,
        }
    }
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Header values may be secrets.
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("HttpTarget")
            .field("url", &self.url)
            .field("headers", &names)
            .field("authorizer", &self.authorizer.is_some())
            .field("identities", &self.identities)
            .finish()
    }
}

/// How long things may take (C56).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until the server is connected and listed.
    pub connect: Duration,
    /// Until a stateless probe of a pipe counts as unanswered.
    pub probe: Duration,
    /// Until a request other than a tool call is answered.
    pub request: Duration,
    /// Until a tool call shows a sign of life.
    pub call: Duration,
    /// Until a tool call is over, whatever signs it shows.
    pub call_total: Duration,
    /// Until a resource that nobody watches any more is unsubscribed.
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            probe: Duration::from_secs(3),
            request: Duration::from_mins(1),
            call: Duration::from_mins(10),
            call_total: Duration::from_hours(2),
            linger: Duration::from_secs(5),
        }
    }
}
