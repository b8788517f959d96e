//! The tool registry: the tools of the host and of servers, in registration order.

use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_agents::model::ToolDefinition;
use plexus_mcp_wire::Raw;

use crate::permission::{PermissionRequest, Permissions};
use crate::tool::{Tool, ToolContext, ToolOutput};

/// All tools of an agent and its sub-agents. It treats all tools alike (S001-09).
pub struct Registry {
    tools: RwLock<Vec<Arc<dyn Tool>>>,
    permissions: Arc<Permissions>,
}

impl Registry {
    /// A registry without tools. `permissions` decides about calls.
    pub fn new(permissions: Arc<Permissions>) -> Self {
        Self {
            tools: RwLock::default(),
            permissions,
        }
    }

    /// The permissions of calls.
    pub fn permissions(&self) -> &Arc<Permissions> {
        &self.permissions
    }

    /// Adds a tool behind all others (S001-07). A tool of the same name is replaced, and keeps its
    /// place.
    pub fn register(&self, tool: Arc<dyn Tool>) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        match tools.iter_mut().find(|known| known.name() == tool.name()) {
            Some(known) => *known = tool,
            None => tools.push(tool),
        }
    }

    /// Removes a tool. Returns whether it was there. Its running calls go on.
    pub fn unregister(&self, name: &str) -> bool {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let before = tools.len();
        tools.retain(|tool| tool.name() != name);
        tools.len() < before
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.iter().find(|tool| tool.name() == name).cloned()
    }

    /// The definitions of all tools, in registration order (S001-04, S001-10).
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.iter().map(|tool| tool.definition()).collect()
    }

    /// Looks up a tool, asks for permission if the call needs it, and runs it (S001-08). Whatever
    /// goes wrong is a result that the model reads. Dropping the future cancels the call.
    pub async fn execute(&self, context: ToolContext, name: &str, input: Raw) -> ToolOutput {
        let Some(tool) = self.find(name) else {
            return ToolOutput::error(format!(
                "there is no tool {name:?}, or no longer; use one of the tools of this request"
            ));
        };
        let request = PermissionRequest {
            subject: tool.subject(&input),
            is_required: tool.requires_permission(&input),
            input: input.clone(),
            agent: context.agent.clone(),
        };
        if let Err(refusal) = self.permissions.check(request).await {
            return ToolOutput::refused(refusal);
        }
        tool.execute(context, input).await
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let names = tools.iter().map(|tool| tool.name().to_owned());
        f.debug_list().entries(names).finish()
    }
}
