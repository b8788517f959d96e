//! One visit of a server: the client uses its tools, resources and prompts.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail, ensure};
use futures_util::future::try_join_all;
use plexus_mcp_core::{CallToolResult, Catalogue, Prompt, Raw, Section, Tool};
use plexus_mcp_protocol::messages::{CallToolParams, GetPromptParams, ResourceUriParams};
use plexus_mcp_protocol::method;
use serde_json::Value;

use crate::caller::Caller;
use crate::example;

const SCHEMA_TOOL: &str = "json_schema_2020_12_tool";
const ECHO_TOOL: &str = "json_schema_echo";

/// How many tools, resources and prompts were used.
#[derive(Debug)]
pub(crate) struct Visited {
    tools: usize,
    resources: usize,
    prompts: usize,
}

impl fmt::Display for Visited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tools,
            resources,
            prompts,
        } = self;
        write!(
            f,
            "{tools} tool calls, {resources} resources read, {prompts} prompts filled in"
        )
    }
}

/// Performs `scenario`. Most scenarios use each listed tool, resource and prompt once; those that
/// need other tool calls have a match arm.
///
/// # Errors
/// The server refuses a request, or does not have the calls or tools that the scenario needs.
pub(crate) async fn scenario(
    scenario: &str,
    given_calls: &[CallToolParams],
    caller: &Caller,
) -> anyhow::Result<Visited> {
    let catalogue = caller.catalogue();
    let tool_calls = match scenario {
        "http-custom-headers" => {
            ensure!(!given_calls.is_empty(), "the scenario names no calls");
            given_calls.to_vec()
        }
        "json-schema-2020-12-preservation" => vec![echo_of_schema(&catalogue)?],
        _ => each(&catalogue, Section::Tools, example_call)?,
    };
    let resources = each(&catalogue, Section::Resources, resource_of)?;
    let prompts = each(&catalogue, Section::Prompts, example_prompt)?;

    // Concurrent calls, to find state that leaks from one call to another.
    try_join_all(tool_calls.iter().map(|params| call_tool(caller, params))).await?;
    for params in &resources {
        let read = caller.call(method::RESOURCES_READ, params.to_raw()).await;
        read.with_context(|| format!("resource {:?}", params.uri))?;
    }
    for params in &prompts {
        let filled_in = caller.call(method::PROMPTS_GET, params.to_raw()).await;
        filled_in.with_context(|| format!("prompt {:?}", params.name))?;
    }
    Ok(Visited {
        tools: tool_calls.len(),
        resources: resources.len(),
        prompts: prompts.len(),
    })
}

async fn call_tool(caller: &Caller, params: &CallToolParams) -> anyhow::Result<()> {
    let named = || format!("tool {:?}", params.name);
    let outcome = caller.call(method::TOOLS_CALL, params.to_raw()).await;
    let result: CallToolResult = outcome.with_context(named)?.decode().with_context(named)?;
    if result.is_error {
        bail!("{} failed: {:?}", named(), result.content);
    }
    Ok(())
}

/// One request for each entry of a list.
fn each<T>(
    catalogue: &Catalogue,
    section: Section,
    request: fn(&Raw) -> Result<T, serde_json::Error>,
) -> Result<Vec<T>, serde_json::Error> {
    let entries = catalogue.list(section).entries().iter();
    entries.map(|entry| request(&entry.definition)).collect()
}

fn example_call(definition: &Raw) -> Result<CallToolParams, serde_json::Error> {
    let tool: Tool = definition.decode()?;
    let schema: Value = tool.input_schema.decode()?;
    Ok(CallToolParams {
        name: tool.name,
        arguments: Some(Raw::encode(&example::object(&schema))?),
    })
}

fn resource_of(definition: &Raw) -> Result<ResourceUriParams, serde_json::Error> {
    definition.decode()
}

fn example_prompt(definition: &Raw) -> Result<GetPromptParams, serde_json::Error> {
    let prompt: Prompt = definition.decode()?;
    let arguments = prompt.arguments.into_iter();
    Ok(GetPromptParams {
        name: prompt.name,
        arguments: arguments
            .map(|argument| (argument.name, "example".to_owned()))
            .collect(),
    })
}

/// A call of [`ECHO_TOOL`] with the listed input schema of [`SCHEMA_TOOL`] as its argument.
fn echo_of_schema(catalogue: &Catalogue) -> anyhow::Result<CallToolParams> {
    let tool = catalogue.list(Section::Tools).get(SCHEMA_TOOL);
    let definition = &tool
        .with_context(|| format!("no tool {SCHEMA_TOOL:?}"))?
        .definition;
    let schema = definition.decode::<Tool>()?.input_schema;
    Ok(CallToolParams {
        name: ECHO_TOOL.to_owned(),
        arguments: Some(Raw::encode(&BTreeMap::from([("schema", schema)]))?),
    })
}
