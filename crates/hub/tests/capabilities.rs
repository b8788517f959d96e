//! Lists of servers that offer some tools only to clients with certain capabilities.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::sync::Arc;

use plexus_mcp_client::{Affinity, Definition, Program, Target};
use plexus_mcp_core::{Implementation, Peer, Principal, Raw, Section, Service};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::server::{Offer, Process, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

fn peer(capabilities: &Value) -> Arc<Peer> {
    let capabilities = Raw::encode(capabilities).unwrap();
    let capabilities = ClientCapabilities::from_raw(&capabilities).unwrap();
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        capabilities,
        None,
        Principal::anonymous(),
    );
    Arc::new(peer)
}

/// A server whose first list has the tools `work` and `ask`, and whose further lists have `work`.
fn script(revision: Revision) -> Script {
    let whole = Offer::tools(revision, [tool("work"), tool("ask")]);
    let part = Offer::tools(revision, [tool("work")]);
    let list = |offer: &Offer| [Step::Result(offer.answer("tools/list").unwrap())];
    Script::from(&whole)
        .on("tools/list", list(&whole))
        .then("tools/list", list(&part))
}

async fn hub_with(server: &StdioServer, affinity: Affinity) -> Hub {
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
    let mut definition = Definition::new(Target::Stdio(program));
    definition.affinity = affinity;
    let kind = MemberKind::Upstream(Box::new(definition));
    hub.set_members(vec![MemberSpec::new("one", kind, [1; 32])])
        .await;
    within("the server", hub.connect_all()).await;
    hub
}

/// The tools that a client is shown when it asks for the list.
async fn listed(hub: &Hub, peer: &Arc<Peer>) -> Vec<String> {
    if let Some(settling) = hub.settling_for(peer) {
        within("the list", settling).await;
    }
    let view = hub.catalogue_for(peer).unwrap_or_else(|| hub.catalogue());
    let catalogue = view.borrow().clone();
    let tools = catalogue.list(Section::Tools).entries().iter();
    tools.map(|tool| tool.key.to_string()).collect()
}

fn everything() -> Value {
    json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

async fn count_of_lists(process: &Process) -> usize {
    let methods = process.methods().await;
    methods
        .iter()
        .filter(|method| *method == "tools/list")
        .count()
}

/// A stateless server is asked with the capabilities of the client, once for each set of them.
#[tokio::test]
async fn a_stateless_server_is_listed_for_each_set_of_capabilities() {
    let server = StdioServer::new(script(Revision::NEWEST_STATELESS)).await;
    let hub = hub_with(&server, Affinity::Shared).await;
    let process = server.process().await;
    let (plain, whole) = (peer(&json!({})), peer(&everything()));
    assert_eq!(listed(&hub, &whole).await, ["one__work", "one__ask"]);
    assert_eq!(count_of_lists(&process).await, 1);
    for _ in 0..2 {
        assert_eq!(listed(&hub, &plain).await, ["one__work"]);
        assert_eq!(listed(&hub, &whole).await, ["one__work", "one__ask"]);
        assert_eq!(count_of_lists(&process).await, 2);
    }
    assert_eq!(
        listed(&hub, &peer(&json!({"roots": {}}))).await,
        ["one__work"]
    );
    assert_eq!(count_of_lists(&process).await, 3);
}

/// A server with one session for all clients is listed once.
#[tokio::test]
async fn a_shared_server_of_the_handshake_era_is_listed_once() {
    let server = StdioServer::new(script(Revision::V2025_11_25)).await;
    let hub = hub_with(&server, Affinity::Shared).await;
    let process = server.process().await;
    assert_eq!(
        listed(&hub, &peer(&json!({}))).await,
        ["one__work", "one__ask"]
    );
    assert_eq!(count_of_lists(&process).await, 1);
}

/// A server with a session for each principal is asked in a session that has the capabilities of the
/// client.
#[tokio::test]
async fn a_server_with_a_session_for_each_principal_is_asked_in_one() {
    let whole = Offer::tools(Revision::V2025_11_25, [tool("work"), tool("ask")]);
    let script = Script::from(&whole).on("tools/list", []);
    let server = StdioServer::new(script).await;
    let connecting = hub_with(&server, Affinity::Principal);
    let answering = async {
        let process = server.process().await;
        let request = process.received("tools/list").await;
        let list = whole.answer("tools/list").unwrap();
        process.reply(&request, list).await;
    };
    let (hub, ()) = tokio::join!(connecting, answering);
    let plain = peer(&json!({}));
    let answering = async {
        let process = server.process().await;
        let greeting = process.received("initialize").await;
        assert_eq!(greeting["params"]["capabilities"], json!({}));
        let request = process.received("tools/list").await;
        process
            .reply(&request, json!({"tools": [tool("work")]}))
            .await;
    };
    let (shown, ()) = tokio::join!(listed(&hub, &plain), answering);
    assert_eq!(shown, ["one__work"]);
    assert_eq!(listed(&hub, &plain).await, ["one__work"]);
}

/// A list for a set of capabilities that never ends is given up, and all tools are shown.
#[tokio::test]
async fn an_endless_list_for_a_set_of_capabilities_is_bounded_in_bytes() {
    let whole = Offer::tools(Revision::NEWEST_STATELESS, [tool("work"), tool("ask")]);
    let server = StdioServer::new(Script::from(&whole).on("tools/list", [])).await;
    let connecting = hub_with(&server, Affinity::Shared);
    let answering = async {
        let process = server.process().await;
        let request = process.received("tools/list").await;
        let list = whole.answer("tools/list").unwrap();
        process.reply(&request, list).await;
        process
    };
    let (hub, process) = tokio::join!(connecting, answering);
    let mut page = whole.answer("tools/list").unwrap();
    page["tools"] = json!([tool("work")]);
    page["nextCursor"] = json!("x".repeat(10_000_000));
    let mut pages = 0;
    let answering = async {
        loop {
            let request = process.received("tools/list").await;
            pages += 1;
            process.reply(&request, page.clone()).await;
        }
    };
    let plain = peer(&json!({}));
    let shown = tokio::select! {
        shown = listed(&hub, &plain) => shown,
        () = answering => Vec::new(),
    };
    assert_eq!(shown, ["one__work", "one__ask"]);
    assert_eq!(pages, 7, "of 10 MB each");
}
