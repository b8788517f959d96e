//! Scripted servers as members of a hub, and calls to them.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{Definition, Program, ServerState, Target};
use plexus_mcp_core::{
    Call, EventSender, Fault, Implementation, Peer, Principal, Raw, Section, Service,
};
use plexus_mcp_hub::catalogue_cache::CatalogueCache;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, Prepare};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use plexus_testkit::server::{Offer, Process, Script, StdioServer, Step, tool};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A timeout far longer than any step takes, even on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) fn hub() -> Hub {
    Hub::new(Implementation::new("hub", "1.0.0"))
}

/// A server whose tool `work` returns its arguments.
pub(crate) async fn echoing() -> StdioServer {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    StdioServer::new(Script::from(&offer).on("tools/call", [Step::Echo])).await
}

/// A member that runs `program`.
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

pub(crate) fn with_cache(directory: &tempfile::TempDir) -> Hub {
    let cache = CatalogueCache::in_directory(directory.path());
    Hub::with_cache(Implementation::new("hub", "1.0.0"), cache)
}

pub(crate) async fn until(hub: &Hub, what: &str, is_so: impl Fn(&Hub) -> bool) {
    let mut events = hub.events();
    let waiting = async {
        while !is_so(hub) {
            // Several events may be missed; the condition is checked after each one that is
            // received.
            drop(events.recv().await);
        }
    };
    assert!(timeout(TEST_TIMEOUT, waiting).await.is_ok(), "{what}");
}

/// Waits as a list request would.
pub(crate) async fn settled(hub: &Hub) {
    if let Some(settling) = hub.settling() {
        timeout(TEST_TIMEOUT, settling).await.unwrap();
    }
}

/// A server whose definition is never made.
pub(crate) fn never(name: &str, fingerprint: u8) -> MemberSpec {
    let never: Prepare = Arc::new(|| Box::pin(std::future::pending()));
    MemberSpec::new(name, MemberKind::Deferred(never), [fingerprint; 32])
}

/// Has a silent process answer the handshake and the first list.
pub(crate) async fn greeted(process: &Process, offer: &Offer) {
    let discover = process.received("server/discover").await;
    let refusal = offer.answer("server/discover").unwrap_err();
    process.refuse(&discover, refusal).await;
    for method in ["initialize", "tools/list"] {
        let request = process.received(method).await;
        process.reply(&request, offer.answer(method).unwrap()).await;
    }
}

pub(crate) fn state(hub: &Hub, name: &str) -> ServerState {
    hub.server_status(name).unwrap().state()
}
