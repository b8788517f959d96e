//! `server/discover`: the self-description of a stateless server.

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Serialize};

use super::codec::encodes;

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resultType", rename = "complete", rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The revisions the server speaks, handshake ones included.
    pub supported_versions: Vec<String>,
    /// The capabilities of the server.
    pub capabilities: Raw,
    /// Instructions to the model on how to use the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long this result may be cached, in milliseconds.
    pub ttl_ms: u64,
    /// The callers that this result may be cached for.
    pub cache_scope: CacheScope,
    /// `_meta`; holds the server's identity.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The callers that a cached result may be given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the specification closes this set")]
pub enum CacheScope {
    /// The result may be shared by all callers.
    Public,
    /// The result is only for the caller that requested it.
    Private,
}

encodes!(DiscoverResult);
