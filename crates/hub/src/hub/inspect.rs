//! What is behind the names that clients see, for people who want to know.

use std::sync::Arc;

use plexus_service::{Catalogue, Section};

use super::Hub;
use crate::routes::Owner;

/// Whose an entry of the hub's catalogue is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The member that has it.
    pub member: Arc<str>,
    /// What the member itself calls it.
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
    /// Whose an entry is. Tools and prompts are found by any of their names, resources also by the
    /// templates that they fit.
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

    /// What a member offers under its own names, whether it is shown or not.
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
