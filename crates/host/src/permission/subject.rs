//! What a call is about, for permission rules and questions.

use plexus_mcp_agents::model::ToolDefinition;
use plexus_mcp_hub::policy::ToolFacts;
use sha2::{Digest, Sha256};

use super::mode::Risk;

/// What a call is about: the tool that rules name, its risk, and the identity that an "always" is
/// bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The tool's name, as the model and the user see it.
    pub tool: String,
    /// The tool that calls it, such as `SubscribePolling`. Rules that deny that one hold as well.
    pub through: Option<String>,
    /// The server that has the tool; `None` for a tool of the host.
    pub owner: Option<Owner>,
    /// The risk of the call.
    pub risk: Risk,
    /// The digest of the tool's definition. An "always" ends when it changes.
    pub digest: [u8; 32],
}

/// The owner of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The name of the server.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The name by which the hub's clients see it, which rules may use, too.
    pub shown: String,
}

impl Subject {
    /// A tool of the host.
    pub fn of_host(definition: &ToolDefinition, risk: Risk) -> Self {
        Self {
            tool: definition.name.clone(),
            through: None,
            owner: None,
            risk,
            digest: digest(definition),
        }
    }

    /// A tool of a server.
    pub fn of_server(
        definition: &ToolDefinition,
        risk: Risk,
        server: &str,
        tool: &str,
        shown: &str,
    ) -> Self {
        let owner = Owner {
            server: server.to_owned(),
            tool: tool.to_owned(),
            shown: shown.to_owned(),
        };
        Self {
            owner: Some(owner),
            ..Self::of_host(definition, risk)
        }
    }

    /// The same, called by another tool.
    #[must_use]
    pub fn called_through(mut self, tool: &str) -> Self {
        self.through = Some(tool.to_owned());
        self
    }

    /// The facts for the rules. Rules for `mcp__*` match tools of servers only.
    pub(super) fn facts(&self) -> ToolFacts<'_> {
        match &self.owner {
            Some(owner) => {
                ToolFacts::new(&owner.shown, &owner.server, &owner.tool).also_named(&self.tool)
            }
            None => ToolFacts::of_program(&self.tool),
        }
    }
}

fn digest(definition: &ToolDefinition) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let parts = [
        definition.name.as_str(),
        &definition.description,
        definition.input_schema.as_str(),
    ];
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
