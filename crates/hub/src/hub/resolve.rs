//! Name resolution for tools and prompts that are called by another name than the one that is
//! shown.

use std::collections::VecDeque;
use std::sync::Arc;

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{Call, Fault, Peer, Section};

use super::{Hub, status};
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
            [] if self.server_may_own(name) => Err(unknown()),
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
    /// `fault`, if there is nothing to wait for, or why the named server cannot be connected or
    /// listed.
    pub(super) async fn wait_for_owner(&self, call: &Call, fault: Fault) -> Result<(), Fault> {
        let (section, name) = match &fault {
            Fault::UnknownTool(name) => (Section::Tools, name),
            Fault::UnknownPrompt(name) => (Section::Prompts, name),
            Fault::ResourceNotFound(name) => (Section::Resources, name),
            _ => return Err(fault),
        };
        let possible_owners = || {
            let mut owners = self.members();
            owners.retain(|member| names::may_own(&member.name, name));
            VecDeque::from(owners)
        };
        let (mut owners, mut waited_for) = (possible_owners(), Vec::new());
        let mut failure = None;
        while let Some(owner) = owners.pop_front() {
            // A disabled server stays connected, but is not called.
            let is_connected = owner.upstream().is_some_and(Upstream::is_connected);
            if !(is_connected && owner.is_enabled()) {
                let ready = match owner.service() {
                    Ok(_) => owner.over.run_until_cancelled(owner.ready()).await,
                    Err(fault) => Some(Err(fault)),
                };
                match ready {
                    Some(Ok(())) => {}
                    Some(Err(fault)) => {
                        failure = Some(fault);
                        continue;
                    }
                    // It was removed while the call waited. Its successor may own the target.
                    None => {
                        owners = possible_owners();
                        waited_for.clear();
                        failure = None;
                        continue;
                    }
                }
            }
            // A member that has just connected may not be in the merged catalogue yet.
            self.inner.merge();
            if self.address(call).is_ok() {
                return Ok(());
            }
            waited_for.push(owner);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        // What a connected server offers is not known if it cannot be listed.
        for owner in &waited_for {
            if let Some(problem) = status::of(owner).list_problem(section) {
                let name = &owner.name;
                let why = format!("{fault}. The server {name:?} is connected, but {problem}");
                return Err(Fault::Internal(why));
            }
        }
        let settling = self.awaited_members().ok_or(fault)?;
        settling.await;
        Ok(())
    }

    /// Whether `name` begins with the name of a server.
    fn server_may_own(&self, name: &str) -> bool {
        let members = self.members();
        let mut servers = members.iter().filter(|member| member.upstream().is_some());
        servers.any(|server| names::may_own(&server.name, name))
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
