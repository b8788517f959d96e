//! Encoding of results and resources as JSON.

use plexus_mcp_core::{Fault, Raw, ResourceContents};
use serde::Serialize;

/// The media type of resources that are JSON.
pub(crate) const JSON: &str = "application/json";

/// The contents of a resource: `value` as JSON.
pub(crate) fn contents(uri: String, value: &impl Serialize) -> Result<ResourceContents, Fault> {
    let json = to_json(value)?;
    Ok(ResourceContents::text(uri, json.as_str()).mime_type(JSON))
}

/// Encodes a result as JSON.
///
/// # Errors
/// The value cannot be encoded, which is a bug.
pub fn to_json(value: &impl Serialize) -> Result<Raw, Fault> {
    let failed = |error| Fault::Internal(format!("cannot encode the result as JSON: {error}"));
    Raw::encode(value).map_err(failed)
}
