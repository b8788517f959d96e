//! The tools with which a model lists, reads and watches resources of servers.

use std::sync::{Arc, Weak};

use plexus_mcp_core::{Boxed, Client, Section, Tool as Definition};
use plexus_mcp_hub::manage;
use plexus_mcp_hub::{MemberKind, MemberSpec};
use plexus_mcp_wire::Raw;
use serde::Deserialize;

use super::{PREFIX, Servers};
use crate::permission::{Risk, Subject};
use crate::result_text;
use crate::schema::SetupError;
use crate::tool::{Tool, ToolContext, ToolOutput};

/// The tools that are offered without servers, too (C58).
const WITHOUT_SERVERS: [&str; 2] = ["ListMcpResources", "ReadMcpResource"];
const SUBSCRIBE_POLLING: &str = "SubscribePolling";
const NO_SERVERS: &str = "No MCP servers are configured.";

/// Whether a tool is offered without servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Servers,
}

/// One of the six tools.
pub(super) struct ManagementTool {
    servers: Weak<Servers>,
    client: Client,
    tool: Definition,
}

/// The arguments of `SubscribePolling` that permission depends on.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PollArguments {
    #[serde(rename = "type")]
    kind: String,
    #[serde(alias = "server_name", alias = "serverName")]
    server: String,
    #[serde(alias = "tool_name")]
    tool_name: String,
}

impl ManagementTool {
    /// All six, in the order of the service.
    pub(super) fn all(servers: &Arc<Servers>) -> Result<Vec<Self>, SetupError> {
        let MemberSpec { kind, .. } = manage::member(&servers.hub)?;
        let MemberKind::Local(service) = kind else {
            return Ok(Vec::new());
        };
        let catalogue = Arc::clone(&service.catalogue().borrow());
        let client = Client::of(service).present(servers.presence.clone());
        let entries = catalogue.list(Section::Tools).entries().iter();
        let tools = entries.filter_map(|entry| entry.definition.decode().ok());
        Ok(tools
            .map(|tool| Self {
                servers: Arc::downgrade(servers),
                client: client.clone(),
                tool,
            })
            .collect())
    }

    pub(super) fn needs(&self) -> Needs {
        if WITHOUT_SERVERS.contains(&self.tool.name.as_str()) {
            Needs::Nothing
        } else {
            Needs::Servers
        }
    }

    /// Whether a call may poll a tool. What cannot be understood may.
    fn may_poll_a_tool(&self, input: &Raw) -> bool {
        let kind = || input.decode::<PollArguments>().map(|poll| poll.kind);
        self.tool.name == SUBSCRIBE_POLLING && !kind().is_ok_and(|kind| kind == "resource")
    }

    /// The tool that a call would poll, if it is one of the registered tools.
    fn polled(&self, input: &Raw) -> Option<Arc<dyn Tool>> {
        let PollArguments {
            server, tool_name, ..
        } = input.decode().ok()?;
        let servers = self.servers.upgrade()?;
        let registered = servers.registered.lock();
        let registered = registered.unwrap_or_else(std::sync::PoisonError::into_inner);
        let named = registered.iter().find(|(name, registered)| {
            let origin = &registered.origin;
            let is_it = *origin.name == *tool_name || **name == tool_name;
            *origin.member == *server
                && (is_it || tool_name == format!("{PREFIX}{server}__{}", origin.name))
        });
        let name = named.map(|(name, _)| name.clone())?;
        drop(registered);
        servers.registry.find(&name)
    }
}

impl Tool for ManagementTool {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn description(&self) -> &str {
        self.tool.description.as_deref().unwrap_or_default()
    }

    fn input_schema(&self) -> &Raw {
        &self.tool.input_schema
    }

    /// Only polling a tool needs permission: that of the tool (C27).
    fn requires_permission(&self, input: &Raw) -> bool {
        self.may_poll_a_tool(input)
    }

    fn subject(&self, input: &Raw) -> Subject {
        if !self.may_poll_a_tool(input) {
            return Subject::of_host(&self.definition(), Risk::Low);
        }
        match self.polled(input) {
            Some(polled) => polled.subject(input).called_through(&self.tool.name),
            None => Subject::of_host(&self.definition(), Risk::High),
        }
    }

    fn execute(&self, _context: ToolContext, input: Raw) -> Boxed<ToolOutput> {
        let has_servers = self
            .servers
            .upgrade()
            .is_some_and(|servers| servers.has_servers());
        if !has_servers {
            return Box::pin(std::future::ready(ToolOutput::text(NO_SERVERS)));
        }
        let call = self.client.call_tool(&self.tool.name, input);
        Box::pin(async move {
            match call.await {
                Ok(result) => result_text::output(&result),
                Err(fault) => ToolOutput::error(fault.to_string()),
            }
        })
    }
}
