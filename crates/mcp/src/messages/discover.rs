//! What a stateless server says about itself.

use plexus_wire::Raw;
use serde::{Deserialize, Serialize};

use super::codec::encodes;

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resultType", rename = "complete", rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The revisions the server speaks, handshake ones included.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: Raw,
    /// What the model should know about the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// For how long this may be kept, in milliseconds.
    pub ttl_ms: u64,
    /// For whom this may be kept.
    pub cache_scope: CacheScope,
    /// `_meta`; holds the server's identity.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Who may be given a kept result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the specification closes this set")]
pub enum CacheScope {
    /// Anyone.
    Public,
    /// Only whoever asked.
    Private,
}

encodes!(DiscoverResult);
