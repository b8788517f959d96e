//! Shared helpers.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{Definition, Program, ServerState, Target};
use plexus_mcp_core::{
    Boxed, Call, Catalogue, EventSender, Fault, Implementation, Object, Outcome, Peer, Principal,
    Raw, Section, Service,
};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, MemberStatus};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const LEGACY: Revision = Revision::V2025_11_25;

/// A server with these tools, each of which returns its arguments.
pub(crate) fn echoing(tools: &[&str]) -> Script {
    let tools = tools.iter().map(|name| tool(name));
    Script::from(&Offer::tools(LEGACY, tools)).on("tools/call", [Step::Echo])
}

/// The server as a member, with more time for the probe than a busy machine takes.
pub(crate) fn member(name: &str, server: &StdioServer) -> MemberSpec {
    changed(name, server, 1)
}

/// The same with another fingerprint.
pub(crate) fn changed(name: &str, server: &StdioServer, fingerprint: u8) -> MemberSpec {
    let definition = Box::new(definition(server));
    MemberSpec::new(name, MemberKind::Upstream(definition), [fingerprint; 32])
}

pub(crate) fn definition(server: &StdioServer) -> Definition {
    let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
    let mut definition = Definition::new(Target::Stdio(program));
    definition.timeouts.probe = Duration::from_secs(10);
    definition
}

/// A server that cannot be started.
pub(crate) fn missing(name: &str) -> MemberSpec {
    let program = Program::new("no-such-mcp-server");
    let definition = Box::new(Definition::new(Target::Stdio(program)));
    MemberSpec::new(name, MemberKind::Upstream(definition), [1; 32])
}

pub(crate) fn empty_hub() -> Hub {
    Hub::new(Implementation::new("hub", "1.0.0"))
}

/// A hub with these members, connected as far as possible.
pub(crate) async fn hub_of(members: Vec<MemberSpec>) -> Hub {
    let hub = empty_hub();
    hub.set_members(members).await;
    connect(&hub).await;
    hub
}

/// Connects all members, and waits until their catalogues are merged.
pub(crate) async fn connect(hub: &Hub) {
    within("the members", hub.connect_all()).await;
    let members = hub.status().into_iter().filter(|member| member.enabled);
    let offered: usize = members.map(|member| member.tools.entries().len()).sum();
    let mut catalogues = hub.catalogue();
    let shown =
        catalogues.wait_for(|catalogue| catalogue.list(Section::Tools).entries().len() == offered);
    drop(within("their tools", shown).await.unwrap());
}

pub(crate) fn catalogue(hub: &Hub) -> Arc<Catalogue> {
    Arc::clone(&hub.catalogue().borrow())
}

fn names(catalogue: &Catalogue, section: Section) -> Vec<String> {
    let entries = catalogue.list(section).entries();
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

pub(crate) fn tools(hub: &Hub) -> Vec<String> {
    names(&catalogue(hub), Section::Tools)
}

/// Waits until the tools are these.
pub(crate) async fn tools_become(hub: &Hub, wanted: &[&str]) {
    list_becomes(hub, Section::Tools, wanted).await;
}

/// Waits until the resources are these.
pub(crate) async fn resources_become(hub: &Hub, wanted: &[&str]) {
    list_becomes(hub, Section::Resources, wanted).await;
}

async fn list_becomes(hub: &Hub, section: Section, wanted: &[&str]) {
    let mut catalogues = hub.catalogue();
    let became = catalogues.wait_for(|catalogue| names(catalogue, section) == wanted);
    let became = within(&format!("the list {wanted:?}"), became).await;
    drop(became.unwrap());
}

/// The definition of a tool, as shown.
pub(crate) fn definition_of(hub: &Hub, name: &str) -> Raw {
    let catalogue = catalogue(hub);
    let entry = catalogue.list(Section::Tools).get(name);
    entry
        .unwrap_or_else(|| panic!("{name} is not shown"))
        .definition
        .clone()
}

pub(crate) fn status(hub: &Hub, name: &str) -> Option<MemberStatus> {
    let mut members = hub.status().into_iter();
    members.find(|member| &*member.name == name)
}

/// The state of a member's connection.
pub(crate) fn state(hub: &Hub, name: &str) -> ServerState {
    let member = status(hub, name).unwrap();
    member.status.unwrap().state
}

pub(crate) fn peer() -> Arc<Peer> {
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        ClientCapabilities::none(),
        None,
        Principal::anonymous(),
    );
    Arc::new(peer)
}

/// A call by a peer without capabilities.
pub(crate) fn calling(hub: &Hub, method: &str, params: &Value) -> Boxed<Outcome> {
    let (events, _queue) = EventSender::channel(peer(), false, None);
    let params = Raw::encode(params).unwrap();
    hub.call(Call::new(
        method,
        Object::parse(&params).unwrap(),
        events,
        CancellationToken::new(),
    ))
}

pub(crate) async fn call(hub: &Hub, method: &str, params: Value) -> Result<Value, Fault> {
    let outcome = within(method, calling(hub, method, &params)).await;
    outcome.map(|result| result.decode().unwrap())
}

pub(crate) async fn try_tool(hub: &Hub, name: &str) -> Result<Value, Fault> {
    call(hub, "tools/call", json!({"name": name, "arguments": {}})).await
}

/// A call of a tool that must succeed.
pub(crate) async fn call_tool(hub: &Hub, name: &str) -> Value {
    let result = try_tool(hub, name).await;
    result.unwrap_or_else(|fault| panic!("{name} failed: {fault}"))
}

/// A tool call that must fail, and its error.
pub(crate) async fn tool_fails(hub: &Hub, name: &str) -> String {
    let outcome = try_tool(hub, name).await;
    outcome.expect_err("the call must fail").to_string()
}
