//! Extensions of servers behind a hub: pages of MCP Apps, and methods.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::Arc;

use plexus_mcp_client::{Definition, Program, Target};
use plexus_mcp_core::{
    Call, Catalogue, EventSender, Fault, Implementation, Object, Peer, Principal, Raw, Section,
    Service,
};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const REVISION: Revision = Revision::V2025_11_25;
const UI: &str = "io.modelcontextprotocol/ui";
const SKILLS: &str = "io.modelcontextprotocol/skills";

/// A hub with the servers `one` and `two`.
async fn hub(one: Script, two: Script) -> (Hub, [StdioServer; 2]) {
    let servers = [StdioServer::new(one).await, StdioServer::new(two).await];
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let member = |name: &str, server: &StdioServer| {
        let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
        let definition = Box::new(Definition::new(Target::Stdio(program)));
        MemberSpec::new(name, MemberKind::Upstream(definition), [1; 32])
    };
    let members = vec![member("one", &servers[0]), member("two", &servers[1])];
    hub.set_members(members).await;
    within("the servers", hub.connect_all()).await;
    (hub, servers)
}

async fn ask(hub: &Hub, method: &str, params: Value) -> Result<Value, Fault> {
    let none = ClientCapabilities::none();
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        none,
        None,
        Principal::anonymous(),
    );
    let (events, _queue) = EventSender::channel(Arc::new(peer), false, None);
    let params = Object::parse(&Raw::encode(&params).unwrap()).unwrap();
    let call = Call::new(method, params, events, CancellationToken::new());
    let outcome = within(method, hub.call(call)).await;
    outcome.map(|result| result.decode().unwrap())
}

fn catalogue(hub: &Hub) -> Arc<Catalogue> {
    hub.catalogue().borrow().clone()
}

/// A server with a tool that has a page. The server that does not list the page can read it too.
fn with_page(text: &str, is_listed: bool) -> Script {
    let mut app = tool("show");
    app["_meta"] = json!({"ui": {"resourceUri": "ui://page"}, "ui/resourceUri": "ui://page"});
    let mut offer = Offer::tools(REVISION, [app])
        .declaring("resources", json!({}))
        .declaring("extensions", json!({UI: {}}));
    if is_listed {
        offer
            .resources
            .push(json!({"uri": "ui://page", "name": "page"}));
    }
    let page =
        json!({"contents": [{"uri": "ui://page", "text": text, "_meta": {"ui": {"csp": {}}}}]});
    let link = json!({"content": [{"type": "resource_link", "uri": "ui://page", "name": "page"}]});
    Script::from(&offer)
        .on("resources/read", [Step::Result(page)])
        .on("tools/call", [Step::Result(link)])
}

/// The page that a tool names is that of its own server, listed or not.
#[tokio::test]
async fn the_page_of_a_tool_is_that_of_its_server() {
    for is_listed in [true, false] {
        let (hub, _servers) = hub(
            with_page("of one", is_listed),
            with_page("of two", is_listed),
        )
        .await;
        let catalogue = catalogue(&hub);
        for server in ["one", "two"] {
            let tools = catalogue.list(Section::Tools);
            let shown: Value = tools
                .get(&format!("{server}__show"))
                .unwrap()
                .definition
                .decode()
                .unwrap();
            let uri = format!("ui://{server}/page");
            assert_eq!(shown["_meta"]["ui"]["resourceUri"], uri);
            assert_eq!(shown["_meta"]["ui/resourceUri"], uri);
            assert_eq!(
                catalogue.list(Section::Resources).get(&uri).is_some(),
                is_listed
            );

            let read = ask(&hub, "resources/read", json!({"uri": uri}))
                .await
                .unwrap();
            assert_eq!(read["contents"][0]["text"], format!("of {server}"));
            assert_eq!(read["contents"][0]["uri"], uri);
            assert_eq!(read["contents"][0]["_meta"], json!({"ui": {"csp": {}}}));

            let call = json!({"name": format!("{server}__show"), "arguments": {}});
            let result = ask(&hub, "tools/call", call).await.unwrap();
            assert_eq!(result["content"][0]["uri"], uri);
        }
        // A URI without its owner could be the page of either.
        let unnamed = ask(&hub, "resources/read", json!({"uri": "ui://page"})).await;
        assert!(
            matches!(unnamed, Err(Fault::ResourceNotFound(_))),
            "{unnamed:?}"
        );
        let declared: Value = catalogue
            .capabilities
            .extensions
            .as_ref()
            .unwrap()
            .decode()
            .unwrap();
        assert_eq!(declared, json!({UI: {}}));
    }
}

/// A server that declares these extensions, and answers a method of them with its name.
fn with_extensions(name: &str, extensions: Value) -> Script {
    let offer = Offer::tools(REVISION, [tool("work")]).declaring("extensions", extensions);
    let mut script = Script::from(&offer);
    for method in ["skills/list", "resources/directory/read", "shared/list"] {
        script = script.on(method, [Step::Result(json!({"from": name}))]);
    }
    script
}

#[tokio::test]
async fn an_extension_is_served_by_the_only_server_that_has_it() {
    let one = with_extensions("one", json!({"com.example/shared": {}}));
    let two = with_extensions(
        "two",
        json!({"com.example/shared": {}, SKILLS: {"directoryRead": true}}),
    );
    let (hub, _servers) = hub(one, two).await;
    let declared = catalogue(&hub).capabilities.extensions.clone().unwrap();
    let declared: Value = declared.decode().unwrap();
    assert_eq!(declared, json!({SKILLS: {"directoryRead": true}}));

    for method in ["skills/list", "resources/directory/read"] {
        let answer = ask(&hub, method, json!({})).await.unwrap();
        assert_eq!(answer["from"], "two", "{method}");
    }
    // Two servers have this one, so the method could be for either.
    let shared = ask(&hub, "shared/list", json!({})).await;
    assert!(
        matches!(shared, Err(Fault::MethodNotFound(_))),
        "{shared:?}"
    );
}
