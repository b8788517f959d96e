//! Permission checks for tool calls.

use std::sync::Arc;

use plexus_mcp_core::{Call, Entry, Fault, Peer, Section};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Raw;

use super::{Hub, Origin};
use crate::manage;
use crate::member::Member;
use crate::policy::{Permit, Policy, ToolFacts, ToolIdentity};

impl Hub {
    /// Why the user would be asked about a call of a tool by `peer`; `None` if it would be made or
    /// refused without a question.
    pub fn question_about(&self, tool: &Origin, arguments: &Raw, peer: &Peer) -> Option<String> {
        let policy = self.inner.gate.policy()?;
        let member = self.member(&tool.member).ok()?;
        let tool = CalledTool {
            entry: self.shown_tool(&member, &tool.name)?,
            name: tool.name.to_string(),
            arguments: arguments.clone(),
        };
        let (facts, identity) = (tool.facts(&member, &policy, peer), tool.identity(&member));
        let gate = &self.inner.gate;
        gate.question(&policy, &facts, &identity, &tool.arguments, &peer.principal)
    }

    /// Permission of the policy or the user for a call that is routed to `member`, and for
    /// repeating it; or why there is none. The refusal becomes a tool result, not a protocol error,
    /// so that the model and the user read it.
    pub(crate) async fn permit(
        &self,
        call: &Call,
        member: &Member,
    ) -> Result<Result<Permit, String>, Fault> {
        match self.policy_for(call) {
            Some(policy) => self.judge(&policy, call, member).await,
            None => Ok(Ok(Permit::default())),
        }
    }

    async fn judge(
        &self,
        policy: &Policy,
        call: &Call,
        member: &Member,
    ) -> Result<Result<Permit, String>, Fault> {
        let tool = self.called(call, member)?;
        let (facts, identity) = (
            tool.facts(member, policy, call.peer()),
            tool.identity(member),
        );
        let gate = &self.inner.gate;
        let permit = gate.permit(policy, &facts, &identity, &tool.arguments, &call.events);
        Ok(permit.await)
    }

    /// Why a permitted call is not made or repeated, because the policy or the tool has changed.
    pub(crate) fn revoked(
        &self,
        permit: &Permit,
        call: &Call,
        member: &Member,
    ) -> Result<Option<String>, Fault> {
        let Some(policy) = self.policy_for(call) else {
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

    /// The policy, if it has rules for such a call.
    fn policy_for(&self, call: &Call) -> Option<Arc<Policy>> {
        let policy = self.inner.gate.policy()?;
        (&*call.method == method::TOOLS_CALL).then_some(policy)
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
            .defined_by(self.entry.definition.clone(), policy.trusts(&member.name))
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
