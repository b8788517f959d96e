//! Permission checks for tool calls.

use plexus_mcp_core::{Call, Entry, Fault, Peer, Section};
use plexus_mcp_protocol::messages::ToolAnnotations;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Raw;

use super::Hub;
use crate::manage;
use crate::member::Member;
use crate::policy::{Permit, Policy, ToolFacts, ToolIdentity};

impl Hub {
    /// Why the policy or the user refuses a call that is routed to `member`. The refusal becomes a
    /// tool result, not a protocol error, so that the model and the user read it.
    pub(super) async fn refusal(
        &self,
        call: &Call,
        member: &Member,
    ) -> Result<Option<String>, Fault> {
        match self.inner.gate.policy() {
            // Boxed, because every call's future has room for this one; keeping it small matters
            // for all calls.
            Some(policy) if &*call.method == method::TOOLS_CALL => {
                Box::pin(self.judge(&policy, call, member)).await
            }
            _ => Ok(None),
        }
    }

    async fn judge(
        &self,
        policy: &Policy,
        call: &Call,
        member: &Member,
    ) -> Result<Option<String>, Fault> {
        let tool = self.called(call, member)?;
        let (facts, identity) = (
            tool.facts(member, policy, call.peer()),
            tool.identity(member),
        );
        let gate = &self.inner.gate;
        let refusal = gate.refusal(policy, &facts, &identity, &tool.arguments, &call.events);
        Ok(refusal.await)
    }

    /// Permission to make this call now and to repeat it without asking; or why there is none.
    pub(crate) async fn permit(
        &self,
        call: &Call,
        member: &Member,
    ) -> Result<Result<Permit, String>, Fault> {
        if let Some(refusal) = self.refusal(call, member).await? {
            return Ok(Err(refusal));
        }
        let Some(policy) = self.inner.gate.policy() else {
            return Ok(Ok(Permit::default()));
        };
        let tool = self.called(call, member)?;
        let (facts, identity) = (
            tool.facts(member, &policy, call.peer()),
            tool.identity(member),
        );
        let principal = &call.peer().principal;
        let permit = Permit::of(&policy, &facts, &identity, &tool.arguments, principal);
        Ok(Ok(permit))
    }

    /// Why a permitted call is not repeated, because the policy or the tool has changed.
    pub(crate) fn revoked(
        &self,
        permit: &Permit,
        call: &Call,
        member: &Member,
    ) -> Result<Option<String>, Fault> {
        let Some(policy) = self.inner.gate.policy() else {
            return Ok(None);
        };
        let tool = self.called(call, member)?;
        let (facts, identity) = (
            tool.facts(member, &policy, call.peer()),
            tool.identity(member),
        );
        let principal = &call.peer().principal;
        let gate = &self.inner.gate;
        Ok(gate.revoked(
            permit,
            &policy,
            &facts,
            &identity,
            &tool.arguments,
            principal,
        ))
    }

    /// The called tool, by its owner's name for it.
    fn called(&self, call: &Call, member: &Member) -> Result<CalledTool, Fault> {
        let name = call.params.text("name").unwrap_or_default().into_owned();
        let arguments = call.params.get("arguments").cloned();
        let entry = self.shown_tool(member, &name);
        let entry = entry.ok_or_else(|| Fault::UnknownTool(name.clone()))?;
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        Ok(CalledTool {
            entry,
            name,
            arguments,
        })
    }

    /// The catalogue entry of the tool that `member` calls `name`.
    fn shown_tool(&self, member: &Member, name: &str) -> Option<Entry> {
        let routes = self.routes();
        let shown = routes.shown_tool(&member.name, name)?;
        let catalogue = self.inner.catalogue.borrow();
        catalogue.list(Section::Tools).get(shown).cloned()
    }
}

/// The tool of a call, and its arguments.
struct CalledTool {
    /// Its entry, as shown to clients.
    entry: Entry,
    /// Its owner's name for it.
    name: String,
    arguments: Raw,
}

impl CalledTool {
    fn facts<'a>(&self, member: &'a Member, policy: &Policy, peer: &Peer) -> ToolFacts<'a> {
        let facts = ToolFacts::new(&self.entry.key, &member.name, &self.name)
            .annotated(annotations(&self.entry), policy.trusts(&member.name))
            .called_by(peer);
        if manage::is_management(member) {
            return facts.ours();
        }
        facts
    }

    fn identity<'a>(&'a self, member: &'a Member) -> ToolIdentity<'a> {
        ToolIdentity {
            server: &member.fingerprint,
            definition: &self.entry.definition,
        }
    }
}

/// The annotations of a tool; hints that cannot be parsed are ignored.
fn annotations(entry: &Entry) -> ToolAnnotations {
    #[derive(serde::Deserialize)]
    struct Annotated {
        annotations: Option<ToolAnnotations>,
    }
    let read = entry.definition.decode::<Annotated>().ok();
    read.and_then(|tool| tool.annotations).unwrap_or_default()
}
