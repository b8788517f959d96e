//! Scripted servers as members of a hub, and calls to them.

use std::sync::Arc;
use std::time::Duration;

use plexus_client::{Definition, Program, Target};
use plexus_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp::Revision;
use plexus_mcp::messages::ClientCapabilities;
use plexus_service::{
    Call, EventSender, Fault, Implementation, Peer, Principal, Raw, Section, Service,
};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_wire::{Limits, Object};
use tokio_util::sync::CancellationToken;

/// Far longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn hub() -> Hub {
    Hub::new(Implementation::new("hub", "1.0.0"))
}

/// A server whose tool `work` answers with its own arguments.
pub(crate) async fn echoing() -> StdioServer {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    StdioServer::new(Script::from(&offer).on("tools/call", [Step::Echo])).await
}

/// The member that `program` is.
pub(crate) fn server(name: &str, program: &StdioServer, fingerprint: u8) -> MemberSpec {
    let arguments = program.arguments().iter().cloned();
    let program = Program::new(StdioServer::command()).args(arguments);
    let definition = Box::new(Definition::new(Target::Stdio(program)));
    MemberSpec::new(name, MemberKind::Upstream(definition), [fingerprint; 32])
}

pub(crate) fn tool_params(name: &str, n: usize) -> String {
    format!(r#"{{"name":"{name}","arguments":{{"n":{n}}}}}"#)
}

/// A client.
pub(crate) fn anybody() -> Arc<Peer> {
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        ClientCapabilities::none(),
        None,
        Principal::anonymous(),
    );
    Arc::new(peer)
}

pub(crate) async fn call(hub: &Hub, method: &str, params: &str) -> Result<String, Fault> {
    let (events, _queue) = EventSender::channel(anybody(), false, None);
    let params = Raw::parse(params.to_owned().into(), &Limits::default()).unwrap();
    let call = Call::new(
        method,
        Object::parse(&params).unwrap(),
        events,
        CancellationToken::new(),
    );
    let outcome = hub.call(call).await;
    outcome.map(|result| result.as_str().to_owned())
}

pub(crate) fn keys(hub: &Hub, section: Section) -> Vec<String> {
    let catalogue = hub.catalogue().borrow().clone();
    let entries = catalogue.list(section).entries().iter();
    entries.map(|entry| entry.key.to_string()).collect()
}
