//! Tools and prompts that are called by names under which nobody shows them.

use std::sync::Arc;

use plexus_service::{Fault, Peer};

use super::Hub;
use crate::routes::{Owner, Routes};

impl Hub {
    /// The tool that `peer` means by `name`: as it is shown or by an alias, by a spelling that its
    /// owner takes, or by its owner's own name for it if nobody else has a tool of that name.
    pub(super) fn tool_called(
        &self,
        peer: &Peer,
        routes: &Routes,
        name: &str,
    ) -> Result<Owner, Fault> {
        let shows = |owner: &Owner| self.inner.clients.shows(peer, routes, owner);
        let unknown = || Fault::UnknownTool(name.to_owned());
        if let Some(owner) = routes.tool(name) {
            return shows(owner).then(|| owner.clone()).ok_or_else(unknown);
        }
        // What Plexus itself understands by a name comes before what servers call their tools.
        let spelled = self.tool_spelled(name);
        if let Some(Ok(owner)) = &spelled
            // What is not shown cannot be reached by another name.
            && routes.shows_tool(owner)
            && shows(owner)
        {
            return Ok(owner.clone());
        }
        let called = routes.tools_called(name).iter().filter_map(|shown| {
            let owner = routes.tool(shown).filter(|owner| shows(owner))?;
            Some((shown, owner))
        });
        let called: Vec<_> = called.collect();
        match called.as_slice() {
            [] => Err(spelled.and_then(Result::err).unwrap_or_else(unknown)),
            [(_, owner)] => Ok((*owner).clone()),
            several => Err(ambiguous(
                "tool",
                name,
                several.iter().map(|(shown, _)| *shown),
            )),
        }
    }

    /// The prompt that is meant by `name`, likewise.
    pub(super) fn prompt_called(routes: &Routes, name: &str) -> Result<Owner, Fault> {
        let called = routes.prompts_called(name);
        let owner = match (routes.prompt(name), called) {
            (Some(owner), _) => Some(owner),
            (None, [shown]) => routes.prompt(shown),
            (None, []) => None,
            (None, several) => return Err(ambiguous("prompt", name, several.iter())),
        };
        let unknown = || Fault::UnknownPrompt(name.to_owned());
        owner.cloned().ok_or_else(unknown)
    }

    /// The tool that a member says is meant by `name`, if there is one that knows spellings.
    pub(super) fn tool_spelled(&self, name: &str) -> Option<Result<Owner, Fault>> {
        let members = self.members();
        let mut resolving = members.iter().filter(|member| member.is_enabled());
        let (member, resolve) =
            resolving.find_map(|member| Some((member, member.resolve_tool.as_ref()?)))?;
        Some(resolve(name).map(|key| Owner {
            member: Arc::clone(&member.name),
            key: key.into(),
        }))
    }
}

fn ambiguous<'a>(kind: &str, name: &str, shown: impl Iterator<Item = &'a Arc<str>>) -> Fault {
    let shown: Vec<&str> = shown.map(|name| &**name).collect();
    Fault::InvalidParams(format!(
        "Unknown {kind}: {name}. Say which is meant: {}",
        shown.join(", ")
    ))
}
