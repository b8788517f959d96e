//! Listing and reading resources.

use std::sync::Arc;

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{
    Call, CallToolResult, ContentBlock, Context, Fault, IntoToolResult, Section, ToolError,
    ToolResult,
};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Object, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::{ListArguments, ReadArguments};
use super::registry::SubscriptionRegistry;
use crate::hub::Hub;
use crate::member::Member;

/// One resource of a list (S001-17).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    #[serde(flatten)]
    resource: DescribedResource,
    server: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DescribedResource {
    uri: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// The contents of a resource (S001-18).
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Contents {
    contents: Vec<Content>,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Content {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Binary content, in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

/// The resources of all servers, or of one.
pub(super) async fn list(
    registry: Arc<SubscriptionRegistry>,
    arguments: ListArguments,
) -> ToolResult<String> {
    let hub = registry.hub()?;
    let members = match &arguments.server {
        None => hub.servers(),
        Some(name) => {
            let member = hub.server(name)?;
            member.ready().await.map_err(ToolError::failed)?;
            nothing_because(&hub, &member).map_or(Ok(()), Err)?;
            vec![member]
        }
    };
    let listed_resources: Vec<ListedResource> = members
        .iter()
        .flat_map(|member| listed_resources(member))
        .collect();
    serde_json::to_string(&listed_resources).map_err(ToolError::failed)
}

/// Reads a resource.
pub(super) async fn read(
    registry: Arc<SubscriptionRegistry>,
    ReadArguments { server, uri }: ReadArguments,
    context: Context,
) -> ToolResult<Contents> {
    let hub = registry.hub()?;
    let member = hub.server(&server)?;
    let own = hub.own_uri(&server, &uri);
    let events = context.events().clone().naming(&member.name);
    let cancel = context.cancellation().child_token();
    let call = Call::new(method::RESOURCES_READ, uri_params(&own), events, cancel);
    let read = hub.run_on_member(&member, call).await;
    let failed = |why: &dyn std::fmt::Display| {
        ToolError::Failed(format!(
            "{uri:?} of the server {server:?} cannot be read: {why}"
        ))
    };
    match read {
        Ok(result) => result.decode().map_err(|error| failed(&error)),
        Err(Fault::Cancelled) => Err(Fault::Cancelled.into()),
        Err(fault) => Err(failed(&fault)),
    }
}

/// The parameters of a request for a resource.
pub(super) fn uri_params(uri: &str) -> Object {
    let mut params = Object::new();
    params.set("uri", Raw::string(uri));
    params
}

impl IntoToolResult for Contents {
    /// The model cannot read binary content, so it gets its size and type instead (C55).
    fn into_tool_result(self) -> ToolResult {
        let structured = Raw::encode(&self).map_err(ToolError::failed)?;
        let readable: Vec<_> = self.contents.iter().map(Content::readable).collect();
        let text = Raw::encode(&Self { contents: readable }).map_err(ToolError::failed)?;
        let mut result = CallToolResult::new(vec![ContentBlock::text(text.as_str())]);
        result.structured_content = Some(structured);
        Ok(result)
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(Self))
    }
}

impl Content {
    fn readable(&self) -> Self {
        let mut readable = self.clone();
        if let Some(blob) = &mut readable.blob {
            let kind = self.mime_type.as_deref().unwrap_or("binary");
            // Four characters of Base64 stand for three bytes, and padding for none.
            let bytes = blob.trim_end_matches('=').len() * 3 / 4;
            *blob = format!("[{kind}, {bytes} bytes]");
        }
        readable
    }
}

fn listed_resources(member: &Member) -> Vec<ListedResource> {
    let catalogue = member.catalogue();
    let resources = catalogue.list(Section::Resources).entries().iter();
    let described = resources.filter_map(|entry| entry.definition.decode().ok());
    described
        .map(|resource| ListedResource {
            resource,
            server: member.name.to_string(),
        })
        .collect()
}

/// Why a server's list is empty, if the server cannot be reached.
fn nothing_because(hub: &Hub, member: &Member) -> Option<String> {
    if !listed_resources(member).is_empty() {
        return None;
    }
    let mut members = hub.status().into_iter();
    let status = members.find(|status| status.name == member.name)?.status?;
    if status.state == ServerState::Connected {
        return None;
    }
    let why = status.reason.unwrap_or_else(|| status.state.to_string());
    Some(format!(
        "the server {:?} cannot be asked for its resources: {why}",
        &*member.name
    ))
}
