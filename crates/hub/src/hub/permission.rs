//! Whether calls of tools are made.

use plexus_mcp::messages::ToolAnnotations;
use plexus_mcp::method;
use plexus_service::{Call, Entry, Fault, Peer, Section};
use plexus_wire::Raw;

use super::Hub;
use crate::manage;
use crate::member::Member;
use crate::policy::{Permit, Policy, ToolFacts, ToolIdentity};

impl Hub {
    /// Why policy or the human is against a call that is addressed to `member`. It becomes a
    /// result, not an error of the protocol, so that the model and the user read it.
    pub(super) async fn refusal(
        &self,
        call: &Call,
        member: &Member,
    ) -> Result<Option<String>, Fault> {
        match self.inner.gate.policy() {
            // Every call has a place for what it may wait for; that this is small matters to all.
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

    /// Permission to make this call now, and again when nobody is there to be asked; or why there
    /// is none.
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

    /// Why a permitted call is not made again, be it that the policy changed or the tool.
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

    /// The tool that is called, by its owner's name for it.
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

    /// How the tool that `member` calls `name` is shown to clients.
    fn shown_tool(&self, member: &Member, name: &str) -> Option<Entry> {
        let routes = self.routes();
        let shown = routes.shown_tool(&member.name, name)?;
        let catalogue = self.inner.catalogue.borrow();
        catalogue.list(Section::Tools).get(shown).cloned()
    }
}

/// A call's tool, and what it is called with.
struct CalledTool {
    /// As it is shown.
    entry: Entry,
    /// What its owner calls it.
    name: String,
    arguments: Raw,
}

impl CalledTool {
    fn facts<'a>(&self, member: &'a Member, policy: &Policy, peer: &Peer) -> ToolFacts<'a> {
        let facts = ToolFacts::new(&self.entry.key, &member.name, &self.name)
            .annotated(annotations(&self.entry), policy.trusts(&member.name))
            .called_by(peer);
        if manage::is_it(member) {
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

/// What a tool's server says of it; hints that cannot be read say nothing.
fn annotations(entry: &Entry) -> ToolAnnotations {
    #[derive(serde::Deserialize)]
    struct Annotated {
        annotations: Option<ToolAnnotations>,
    }
    let read = entry.definition.decode::<Annotated>().ok();
    read.and_then(|tool| tool.annotations).unwrap_or_default()
}
