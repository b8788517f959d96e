//! Forms with every kind of field.

use plexus_mcp_core::{
    Builder, Context, ElicitParams, NoArguments, Raw, Tool, ToolError, ToolResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::described;

pub(super) fn add(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_elicitation").description("Asks the user who they are"),
            async |Elicitation { message }: Elicitation, ctx: Context| -> ToolResult<String> {
                let answer = ctx.elicit(form(message, &user())?).await?;
                Ok(format!("User response: {}", described(&answer)))
            },
        )
        .tool(
            Tool::new("test_streaming_elicitation").description("Asks the user in mid-call"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                ctx.progress(0.0, None, "About to ask").await;
                let answer = ctx.elicit(form("Who are you?", &user())?).await?;
                Ok(format!("User response: {}", described(&answer)))
            },
        )
        .tool(
            Tool::new("test_elicitation_sep1034_defaults")
                .description("Asks with a form whose fields have defaults"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let message = "Please review the defaults.";
                let answer = ctx.elicit(form(message, &with_defaults())?).await?;
                Ok(format!("Elicitation completed: {}", described(&answer)))
            },
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums")
                .description("Asks with a form that has every kind of choice"),
            async |_: NoArguments, ctx: Context| -> ToolResult<String> {
                let answer = ctx.elicit(form("Please choose.", &with_choices())?).await?;
                Ok(format!("Elicitation completed: {}", described(&answer)))
            },
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Elicitation {
    /// What the user is told.
    message: String,
}

fn form(message: impl Into<String>, schema: &Value) -> ToolResult<ElicitParams> {
    let schema = Raw::encode(schema).map_err(ToolError::failed)?;
    Ok(ElicitParams::form(message, schema))
}

fn user() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "Your name" },
            "email": { "type": "string", "description": "Your address" },
        },
        "required": ["username", "email"],
    })
}

fn with_defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn with_choices() -> Value {
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    { "const": "value1", "title": "First Option" },
                    { "const": "value2", "title": "Second Option" },
                    { "const": "value3", "title": "Third Option" },
                ],
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        { "const": "value1", "title": "First Choice" },
                        { "const": "value2", "title": "Second Choice" },
                        { "const": "value3", "title": "Third Choice" },
                    ],
                },
            },
        },
    })
}
