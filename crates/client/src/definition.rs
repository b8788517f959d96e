//! The definition of a server: its address or program, limits and timeouts.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Uri};
use plexus_mcp_core::Peer;
use plexus_mcp_protocol::Era;
use plexus_mcp_protocol::messages::{ClientCapabilities, Implementation};
use plexus_mcp_wire::Limits;

use crate::auth::{AuthError, Authorizer, Identities, OwnIdentity};
use crate::child::Program;

/// The configuration of one MCP server.
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
    /// The client info that the server is sent.
    pub client_info: Implementation,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Calls go out one after the other, for servers that cannot take several (C32).
    pub serialize: bool,
    /// Limits for the server's messages.
    pub limits: Limits,
    /// The maximum number of entries in a list.
    pub max_listed: usize,
    /// Which callers share a session, if the server is of the handshake era.
    pub affinity: Affinity,
    /// Limits of the sessions with a server of the handshake era.
    pub sessions: SessionLimits,
    /// The caller is asked for its roots before its first call, for servers that want to know them
    /// outside of any call (TRANSLATION §5.10).
    pub prime_roots: bool,
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
            max_listed: 100_000,
            affinity: Affinity::Shared,
            sessions: SessionLimits::default(),
            prime_roots: false,
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

    /// The authorizer of the server's own connection, if it has one.
    pub(crate) fn authorizer(&self) -> Option<&Arc<dyn Authorizer>> {
        match &self.target {
            Target::Http(target) | Target::Sse(target) => target.authorizer.as_ref(),
            Target::Stdio(_) => None,
        }
    }

    /// The credentials for the calls of `peer`, if callers have their own.
    pub(crate) fn identity(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError> {
        let (Target::Http(target) | Target::Sse(target)) = &self.target else {
            return Ok(None);
        };
        match &target.identities {
            Some(identities) => identities.identity_of(peer),
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

/// Which callers share a session of a handshake server. Callers of a stateless server share one unless
/// they have credentials of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a match on a setting must consider every value"
)]
pub enum Affinity {
    /// All callers.
    Shared,
    /// Callers of one principal that can do the same.
    Principal,
}

/// Limits of the sessions with one server of the handshake era, besides the one for its lists.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionLimits {
    /// The most sessions at a time. A new one evicts the one that was idle for longest.
    pub max_sessions: usize,
    /// The most of them for one principal.
    pub max_per_principal: usize,
    /// How long a session may be idle before it is closed.
    pub idle_timeout: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_sessions: 64,
            max_per_principal: 8,
            idle_timeout: Duration::from_mins(10),
        }
    }
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
    /// Supplies credentials if the server requires authorization.
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

/// Timeouts (C56).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until the handshake is done. After that, the lists have the same time again.
    pub connect: Duration,
    /// Until a stateless probe of a pipe counts as unanswered.
    pub probe: Duration,
    /// Until a request other than a tool call is answered.
    pub request: Duration,
    /// Until a tool call shows a sign of life.
    pub call: Duration,
    /// Until a tool call is over, whatever signs it shows.
    pub call_total: Duration,
    /// Until a resource without watchers is unsubscribed.
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
