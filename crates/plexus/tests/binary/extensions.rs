//! Extensions of servers behind a gateway: pages of MCP Apps, and methods.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::{Value, json};

use crate::gateway::{DISCOVER, LIST, answer, definition, file};
use crate::home::Home;
use crate::process::Plexus;

const REVISION: Revision = Revision::V2025_11_25;
const UI: &str = "io.modelcontextprotocol/ui";
const SKILLS: &str = "io.modelcontextprotocol/skills";

/// A gateway in front of the servers `one` and `two`, whose lists are known.
async fn serve(one: Script, two: Script) -> (Home, Plexus, [StdioServer; 2]) {
    let servers = [StdioServer::new(one).await, StdioServer::new(two).await];
    let [one, two] = servers.each_ref().map(definition);
    let home = Home::with(&[(".mcp.json", &file(&[("one", one), ("two", two)]))]);
    let mut plexus = home.start(&["serve", "--stdio", "--builtin", "none"]);
    plexus.initialize("2025-11-25");
    // The list waits for both servers.
    assert!(plexus.ask(LIST)["result"]["tools"].is_array());
    (home, plexus, servers)
}

fn ask(plexus: &mut Plexus, method: &str, params: &Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
    plexus.send(&request.to_string());
    answer(plexus, &json!(method))
}

/// The extensions that the gateway declares now.
fn declared(plexus: &mut Plexus) -> Value {
    plexus.send(DISCOVER);
    answer(plexus, &json!("d"))["result"]["capabilities"]["extensions"].take()
}

/// A server with a tool that has a page, which has this text.
fn with_page(text: &str) -> Script {
    let mut app = tool("show");
    app["_meta"] = json!({"ui": {"resourceUri": "ui://page"}});
    let mut offer = Offer::tools(REVISION, [app])
        .declaring("resources", json!({}))
        .declaring("extensions", json!({UI: {}}));
    let page = json!({"uri": "ui://page", "name": "page"});
    offer.resources.push(page);
    let page = json!({"contents": [{"uri": "ui://page", "text": text}]});
    Script::from(&offer).on("resources/read", [Step::Result(page)])
}

/// The page of a tool keeps its scheme and is that of its own server, although both servers use the
/// same URI.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_tool_is_that_of_its_server() {
    let (_home, mut plexus, _servers) = serve(with_page("of one"), with_page("of two")).await;
    let listed = ask(&mut plexus, "tools/list", &json!({}));
    let resources = ask(&mut plexus, "resources/list", &json!({}));
    for server in ["one", "two"] {
        let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
        let name = format!("{server}__show");
        let shown = tools.find(|tool| tool["name"] == name).expect(&name);
        let uri = &shown["_meta"]["ui"]["resourceUri"];
        assert_eq!(*uri, format!("ui://{server}/page"));
        let mut pages = resources["result"]["resources"].as_array().unwrap().iter();
        assert!(pages.any(|page| page["uri"] == *uri), "{resources}");
        let read = ask(&mut plexus, "resources/read", &json!({"uri": uri}));
        let page = &read["result"]["contents"][0];
        assert_eq!(page["text"], format!("of {server}"), "{read}");
        assert_eq!(page["uri"], *uri, "{read}");
    }
    // No methods belong to the pages, so any number of servers can have them.
    assert_eq!(declared(&mut plexus), json!({UI: {}}));
    assert_eq!(plexus.end().code, Some(0));
}

/// A server that declares these extensions, and answers their methods with its name.
fn with_extensions(name: &str, extensions: Value) -> Script {
    let offer = Offer::tools(REVISION, [tool("work")]).declaring("extensions", extensions);
    let mut script = Script::from(&offer);
    for method in ["skills/list", "shared/list"] {
        script = script.on(method, [Step::Result(json!({"from": name}))]);
    }
    script
}

/// Only an extension that exactly one server has is declared, and its methods reach that server.
#[tokio::test(flavor = "multi_thread")]
async fn an_extension_is_served_by_the_only_server_that_has_it() {
    let shared = json!({"com.example/shared": {}});
    let both = json!({"com.example/shared": {}, SKILLS: {}});
    let one = with_extensions("one", shared);
    let (_home, mut plexus, _servers) = serve(one, with_extensions("two", both)).await;
    assert_eq!(declared(&mut plexus), json!({SKILLS: {}}));
    let listed = ask(&mut plexus, "skills/list", &json!({}));
    assert_eq!(listed["result"]["from"], "two", "{listed}");
    let refused = ask(&mut plexus, "shared/list", &json!({}));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(plexus.end().code, Some(0));
}
