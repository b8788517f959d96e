//! JSON Schemas of the arguments of our own tools.

use plexus_mcp_core::BuildError;
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Why a tool of the host cannot be offered; this is a mistake in the program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Its schema cannot be encoded.
    #[error("the schema of a tool cannot be encoded")]
    Schema(#[from] serde_json::Error),
    /// Its service cannot be built.
    #[error(transparent)]
    Service(#[from] BuildError),
}

/// The schema of `T`, without references, which some model APIs do not follow.
pub(crate) fn of<T: JsonSchema>() -> Result<Raw, SetupError> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Ok(Raw::encode(&schema)?)
}
