//! The server's description of itself, from its handshake.

use plexus_mcp_protocol::messages::{DiscoverResult, Implementation, ServerCapabilities};
use plexus_mcp_protocol::{Era, Revision, key};
use plexus_mcp_wire::{Object, Raw};

use crate::link::LinkError;

/// The server's description of itself, from the handshake.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The negotiated revision.
    pub revision: Revision,
    /// Its name and version.
    pub identity: Implementation,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Its instructions to the model.
    pub instructions: Option<String>,
    /// The versions that it supports; a handshake-era server names only the one it chose.
    pub versions: Vec<String>,
}

impl ServerFacts {
    /// Reads the result of `initialize`.
    pub(crate) fn from_initialize(result: &Raw) -> Result<Self, LinkError> {
        let nonsense = |why: String| {
            LinkError::InvalidAnswer(format!("initialize got an invalid answer: {why}"))
        };
        let object = Object::parse(result).map_err(|error| nonsense(error.to_string()))?;
        let version: String = object
            .get("protocolVersion")
            .and_then(|version| version.decode().ok())
            .ok_or_else(|| nonsense("no protocolVersion".to_owned()))?;
        let revision = match version.parse::<Revision>() {
            Ok(revision) if revision.era() == Era::Handshake => revision,
            _ => {
                return Err(LinkError::InvalidAnswer(format!(
                    "the server insists on protocol version {version:?}, which a handshake cannot open"
                )));
            }
        };
        Ok(Self {
            revision,
            identity: identity(object.get("serverInfo")),
            capabilities: capabilities(object.get("capabilities")).map_err(nonsense)?,
            instructions: object
                .get("instructions")
                .and_then(|text| text.decode().ok()),
            versions: vec![version],
        })
    }

    /// Reads the result of `server/discover`; `None` if it is no such result.
    pub(crate) fn from_discover(result: &Raw) -> Option<Discovered> {
        let discovered: DiscoverResult = result.decode().ok()?;
        let object = Object::parse(result).ok()?;
        let meta = object
            .get("_meta")
            .and_then(|meta| Object::parse(meta).ok());
        let info = meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
        Some(Discovered {
            // Drafts had it at the top level; reading both is harmless.
            identity: identity(info.or_else(|| object.get("serverInfo"))),
            capabilities: capabilities(Some(&discovered.capabilities)).ok()?,
            instructions: discovered.instructions,
            versions: discovered.supported_versions,
        })
    }
}

/// The description of a stateless server, before a revision is chosen.
#[derive(Debug, Clone)]
pub(crate) struct Discovered {
    identity: Implementation,
    capabilities: ServerCapabilities,
    instructions: Option<String>,
    pub(crate) versions: Vec<String>,
}

impl Discovered {
    pub(crate) fn speaking(self, revision: Revision) -> ServerFacts {
        ServerFacts {
            revision,
            identity: self.identity,
            capabilities: self.capabilities,
            instructions: self.instructions,
            versions: self.versions,
        }
    }
}

/// A server without a valid identity gets an empty name; the connection does not fail.
fn identity(raw: Option<&Raw>) -> Implementation {
    raw.and_then(|raw| raw.decode().ok())
        .unwrap_or_else(|| Implementation::new("", ""))
}

fn capabilities(raw: Option<&Raw>) -> Result<ServerCapabilities, String> {
    match raw {
        Some(raw) => {
            ServerCapabilities::from_raw(raw).map_err(|error| format!("capabilities: {error}"))
        }
        None => Ok(ServerCapabilities::default()),
    }
}
