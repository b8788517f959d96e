//! The definition of a server: its address or program, limits and timeouts.

mod digest;

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
    /// Its address or program.
    pub target: Target,
    /// The era that it speaks; `None` to detect it.
    pub era: Option<Era>,
    /// The client capabilities that a handshake-era server gets. A stateless server gets the
    /// capabilities of each caller with each request.
    pub capabilities: ClientCapabilities,
    /// The client info that is sent to the server.
    pub client_info: Implementation,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Calls go out one after the other, for servers that cannot take several (C32).
    pub serialize: bool,
    /// Limits for the server's messages.
    pub limits: Limits,
    /// The maximum number of entries in a list.
    pub max_listed: usize,
    /// The maximum size of all pages of a list, in bytes.
    pub max_listed_bytes: usize,
    /// Which callers share a session, if the server is of the handshake era.
    pub affinity: Affinity,
    /// Limits of the sessions with a server of the handshake era.
    pub sessions: SessionLimits,
    /// The caller is asked for its roots before its first call, for servers that want to know them
    /// outside of any call (TRANSLATION §5.10).
    pub prime_roots: bool,
}

impl Definition {
    /// A server at `target`, with defaults for all else, which suit callers with different
    /// capabilities.
    ///
    /// A handshake-era server gets the capabilities once for each session. Over HTTP, where
    /// sessions are cheap, callers with different capabilities get separate sessions. A program has
    /// one session for all callers: it gets all capabilities, and questions that the current caller
    /// does not support are refused.
    pub fn new(target: Target) -> Self {
        let affinity = match target {
            Target::Stdio(_) => Affinity::Shared,
            Target::Http(_) | Target::Sse(_) => Affinity::Principal,
        };
        Self {
            target,
            era: None,
            capabilities: ClientCapabilities::everything(),
            client_info: Implementation::new("plexus", env!("CARGO_PKG_VERSION")),
            timeouts: Timeouts::default(),
            serialize: false,
            limits: Limits {
                max_bytes: 16 * 1024 * 1024,
                ..Limits::default()
            },
            max_listed: 100_000,
            max_listed_bytes: 64 * 1024 * 1024,
            affinity,
            sessions: SessionLimits::default(),
            prime_roots: false,
        }
    }

    /// A digest of the fields of a definition whose change requires a new connection. Authorizers
    /// and identities cannot be compared and are not among them.
    pub fn digest(&self) -> [u8; 32] {
        digest::of(self)
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

    /// The definition for a session whose callers share these capabilities and credentials.
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
    /// Supplies credentials for each caller, if the server is called on behalf of its callers. The
    /// server's own credentials are then used for its lists.
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
    /// Until a tool call sends a message, such as a progress notification.
    pub call: Duration,
    /// Until a tool call ends, with or without progress.
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
