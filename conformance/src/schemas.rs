//! Tools for tests of input schemas.

use plexus_mcp_core::{Builder, Context, Raw, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The suites compare this schema with what `tools/list` says of it.
const JSON_SCHEMA_2020_12: &str = include_str!("schemas/json_schema_2020_12.json");

pub(crate) fn add(builder: Builder) -> serde_json::Result<Builder> {
    let composed: Raw = serde_json::from_str(JSON_SCHEMA_2020_12)?;
    let builder = builder
        .tool_with_schema(
            Tool::new("json_schema_2020_12_tool")
                .description("Has an input schema that uses much of JSON Schema 2020-12")
                .input_schema(composed),
            async |arguments: Raw, _: Context| format!("Called with {}", arguments.as_str()),
        )
        .tool(
            Tool::new("test_custom_header").description("Has an argument that is also a header"),
            async |CustomHeader { value }: CustomHeader, _: Context| format!("Value: {value}"),
        )
        .tool(
            Tool::new("test_validated").description("Has an argument with a range"),
            async |Validated { count }: Validated, _: Context| format!("Count: {count}"),
        );
    Ok(builder)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CustomHeader {
    /// Sent in the header `Mcp-Param-Value` as well.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Validated {
    #[schemars(range(min = 1, max = 10))]
    count: u8,
}
