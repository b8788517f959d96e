//! A tool of a server as a [`Tool`] of the host.

use std::sync::Arc;

use plexus_mcp_core::{Boxed, Client, Event, Tool as Definition};
use plexus_mcp_hub::Origin;
use plexus_mcp_wire::Raw;

use crate::observer::AgentEvent;
use crate::permission::{Risk, Subject};
use crate::result_text;
use crate::tool::{Tool, ToolContext, ToolOutput};

/// A tool of a server, or of a service in this process.
pub(super) struct ServerTool {
    pub(super) client: Client,
    /// The name that the model sees.
    pub(super) name: String,
    /// The name by which the hub knows it.
    pub(super) shown: String,
    /// The server and its own name for the tool; `None` for a service in this process.
    pub(super) origin: Option<Origin>,
    /// Whether its annotations are believed.
    pub(super) is_trusted: bool,
    /// Its definition, as the server gave it.
    pub(super) tool: Definition,
}

impl ServerTool {
    /// The risk of calls: annotations only raise it, except those of trusted servers (C26).
    fn risk(&self) -> Risk {
        let annotations = self.tool.annotations.clone().unwrap_or_default();
        if self.is_trusted && annotations.read_only_hint == Some(true) {
            return Risk::Low;
        }
        let is_destructive = annotations.destructive_hint == Some(true);
        if self.origin.is_none() && !is_destructive {
            return Risk::Medium;
        }
        Risk::High
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        self.tool.description.as_deref().unwrap_or_default()
    }

    fn input_schema(&self) -> &Raw {
        &self.tool.input_schema
    }

    fn requires_permission(&self, _input: &Raw) -> bool {
        true
    }

    fn subject(&self, _input: &Raw) -> Subject {
        let (definition, risk) = (self.definition(), self.risk());
        match &self.origin {
            Some(origin) => {
                Subject::of_server(&definition, risk, &origin.member, &origin.name, &self.shown)
            }
            None => Subject::of_host(&definition, risk),
        }
    }

    fn runs_in_parallel(&self) -> bool {
        self.risk() == Risk::Low
    }

    fn execute(&self, context: ToolContext, input: Raw) -> Boxed<ToolOutput> {
        let mut call = self.client.call_tool(&self.shown, input).stream();
        Box::pin(async move {
            while let Some(event) = call.next().await {
                if let Event::Progress(progress) = event {
                    let id = Arc::clone(&context.call);
                    let event = AgentEvent::CallProgress { id, progress };
                    context.observer.event(&context.agent, &event);
                }
            }
            match call.result().await {
                Ok(result) => result_text::output(&result),
                Err(fault) => ToolOutput::error(fault.to_string()),
            }
        })
    }
}
