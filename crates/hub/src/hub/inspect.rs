//! Lookup of the owner and original name behind a name that clients see.

use std::sync::Arc;

use plexus_mcp_core::{Catalogue, Section};

use super::Hub;
use crate::routes::Owner;

/// The owner of an entry of the hub's catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The member that owns it.
    pub member: Arc<str>,
    /// The member's own name for it.
    pub name: Arc<str>,
}

impl From<Owner> for Origin {
    fn from(owner: Owner) -> Self {
        Self {
            member: owner.member,
            name: owner.key,
        }
    }
}

impl Hub {
    /// The owner of an entry. Tools and prompts are found by any of their names, resources also by
    /// the templates that they match.
    pub fn origin(&self, section: Section, name: &str) -> Option<Origin> {
        let routes = self.routes();
        let owner = match section {
            Section::Tools => {
                let shown = only(routes.tools_called(name)).unwrap_or(name);
                let owner = routes.tool(name).or_else(|| routes.tool(shown)).cloned();
                owner.or_else(|| self.tool_spelled(name)?.ok())
            }
            Section::Prompts => Self::prompt_called(&routes, name).ok(),
            Section::Resources => routes.resource(name),
            Section::Templates => routes.template(name),
        };
        owner.map(Origin::from)
    }

    /// The catalogue of a member with its own names, including hidden entries.
    pub fn offer_of(&self, member: &str) -> Option<Arc<Catalogue>> {
        let member = self.member(member).ok()?;
        Some(member.catalogue())
    }
}

fn only(names: &[Arc<str>]) -> Option<&str> {
    match names {
        [name] => Some(name),
        _ => None,
    }
}
