//! Name resolution for tools and prompts that are called by another name than the one that is
//! shown.

use std::sync::Arc;

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{Call, Fault, Peer};

use super::Hub;
use crate::names;
use crate::routes::{Owner, Routes};

impl Hub {
    /// The tool that `peer` means by `name`. It is looked up in this order: shown name or alias, a
    /// spelling that its owner accepts, the owner's own name if no other member has a tool of that
    /// name.
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
        // Names that Plexus itself accepts take precedence over the names that servers give their
        // tools.
        let spelled = self.tool_spelled(name);
        if let Some(Ok(owner)) = &spelled
            // A hidden tool cannot be reached by another name.
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

    /// The prompt that is meant by `name`, resolved in the same way.
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

    /// Waits for a member that may own the target of a call that no route leads to: the server
    /// whose name is the prefix of the target's name, if it is not connected, otherwise servers
    /// whose offer is not known yet.
    ///
    /// # Errors
    /// `fault`, if there is nothing to wait for, or why the named server cannot be connected.
    pub(super) async fn wait_for_owner(&self, call: &Call, fault: Fault) -> Result<(), Fault> {
        let (Fault::UnknownTool(name) | Fault::UnknownPrompt(name) | Fault::ResourceNotFound(name)) =
            &fault
        else {
            return Err(fault);
        };
        let mut owners = self.members();
        owners.retain(|member| {
            let is_there = member.upstream().is_some_and(Upstream::is_connected);
            !is_there && names::may_own(&member.name, name)
        });
        let mut failure = None;
        for owner in owners {
            let ready = match owner.service() {
                Ok(_) => owner.ready().await,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = ready {
                failure = Some(fault);
                continue;
            }
            self.inner.merge();
            if self.address(call).is_ok() {
                return Ok(());
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let settling = self.awaited_members().ok_or(fault)?;
        settling.await;
        Ok(())
    }

    /// The tool that a member resolves `name` to, if some member resolves alternative spellings.
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
