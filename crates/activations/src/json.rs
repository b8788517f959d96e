//! What is shown as JSON.

use plexus_service::{Fault, Raw, ResourceContents};
use serde::Serialize;

/// The type of resources that are JSON.
pub(crate) const JSON: &str = "application/json";

/// What a resource has.
pub(crate) fn contents(uri: String, value: &impl Serialize) -> Result<ResourceContents, Fault> {
    let json = encoded(value)?;
    Ok(ResourceContents::text(uri, json.as_str()).mime_type(JSON))
}

/// A result as JSON.
pub(crate) fn encoded(value: &impl Serialize) -> Result<Raw, Fault> {
    let failed = |error| Fault::Internal(format!("the result is no JSON: {error}"));
    Raw::encode(value).map_err(failed)
}
