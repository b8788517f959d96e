//! Tools that return each kind of content.

use plexus_mcp_core::{
    Builder, ContentBlock, Context, Json, NoArguments, Resource, ResourceContents, Tool, ToolError,
    ToolResult,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::media;

pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_simple_text").description("Returns a text"),
            async |_: NoArguments, _: Context| "This is a simple text response for testing.",
        )
        .tool(
            Tool::new("test_image_content").description("Returns a picture"),
            async |_: NoArguments, _: Context| media::picture(),
        )
        .tool(
            Tool::new("test_audio_content").description("Returns a recording"),
            async |_: NoArguments, _: Context| media::recording(),
        )
        .tool(
            Tool::new("test_embedded_resource").description("Returns a resource with its contents"),
            async |_: NoArguments, _: Context| {
                let text = "This is an embedded resource content.";
                let contents = ResourceContents::text("test://embedded-resource", text);
                ContentBlock::resource(contents.mime_type("text/plain"))
            },
        )
        .tool(
            Tool::new("test_multiple_content_types")
                .description("Returns a text, a picture and a resource"),
            async |_: NoArguments, _: Context| {
                let json = r#"{"test":"data","value":123}"#;
                let contents = ResourceContents::text("test://mixed-content-resource", json);
                vec![
                    ContentBlock::text("Multiple content types test:"),
                    media::picture(),
                    ContentBlock::resource(contents.mime_type("application/json")),
                ]
            },
        )
        .tool(
            Tool::new("test_resource_link").description("Returns a link to a resource"),
            async |_: NoArguments, _: Context| {
                let resource = Resource::new("test://static-text", "static-text");
                ContentBlock::link(resource.mime_type("text/plain"))
            },
        )
        .tool(
            Tool::new("test_structured").description("Returns structured content"),
            async |_: NoArguments, _: Context| {
                Json(Weather {
                    temperature: 22.5,
                    conditions: "Partly cloudy".to_owned(),
                })
            },
        )
        .tool(
            Tool::new("test_error_handling").description("Fails"),
            async |_: NoArguments, _: Context| -> ToolResult {
                let reason = "This tool intentionally returns an error for testing";
                Err(ToolError::failed(reason))
            },
        )
}

#[derive(Debug, Serialize, JsonSchema)]
struct Weather {
    /// In degrees Celsius.
    temperature: f64,
    conditions: String,
}
