//! Servers that offer some tools only to clients with certain capabilities, and servers that ask
//! what a client cannot answer.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::{Value, json};

use crate::gateway::{answer, definition, file};
use crate::home::Home;
use crate::process::Plexus;

/// A server whose first list has the tools `work` and `ask`, and whose further lists have `work`.
fn script(revision: Revision) -> Script {
    let whole = Offer::tools(revision, [tool("work"), tool("ask")]);
    let part = Offer::tools(revision, [tool("work")]);
    let list = |offer: &Offer| [Step::Result(offer.answer("tools/list").unwrap())];
    Script::from(&whole)
        .on("tools/list", list(&whole))
        .then("tools/list", list(&part))
}

/// A gateway in front of this server, without built-in services.
fn serve(server: &StdioServer) -> (Home, Plexus) {
    let home = Home::with(&[(".mcp.json", &file(&[("s", definition(server))]))]);
    let plexus = home.start(&["serve", "--stdio", "--builtin", "none"]);
    (home, plexus)
}

fn everything() -> Value {
    json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

/// A request of a stateless client with these capabilities.
fn request(id: &str, method: &str, mut params: Value, capabilities: &Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// The tools that a client with these capabilities is shown.
fn listed(plexus: &mut Plexus, capabilities: &Value) -> Vec<String> {
    plexus.send(&request("l", "tools/list", json!({}), capabilities));
    let page = answer(plexus, &json!("l"));
    let tools = page["result"]["tools"].as_array().expect("a list");
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// A stateless server is asked with the capabilities of the client, once for each set of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_shown_the_tools_for_its_capabilities() {
    let server = StdioServer::new(script(Revision::NEWEST_STATELESS)).await;
    let (_home, mut plexus) = serve(&server);
    for _ in 0..2 {
        assert_eq!(listed(&mut plexus, &everything()), ["s__work", "s__ask"]);
        assert_eq!(listed(&mut plexus, &json!({})), ["s__work"]);
    }
    let methods = server.process().await.methods().await;
    let lists = methods.iter().filter(|method| *method == "tools/list");
    assert_eq!(lists.count(), 2, "{methods:?}");
    assert_eq!(plexus.end().code, Some(0));
}

/// A server with one session for all clients is listed once. A call that asks what its client cannot
/// answer fails, and the error names the capability.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_session_is_listed_once_and_refuses_what_cannot_be_asked() {
    let script = script(Revision::V2025_11_25).ignoring("tools/call");
    let server = StdioServer::new(script).await;
    let (_home, mut plexus) = serve(&server);
    assert_eq!(listed(&mut plexus, &json!({})), ["s__work", "s__ask"]);
    assert_eq!(listed(&mut plexus, &everything()), ["s__work", "s__ask"]);
    let process = server.process().await;
    let methods = process.methods().await;
    let lists = methods.iter().filter(|method| *method == "tools/list");
    assert_eq!(lists.count(), 1, "{methods:?}");

    let params = json!({"name": "s__ask", "arguments": {}});
    plexus.send(&request("c", "tools/call", params, &json!({})));
    let call = process.received("tools/call").await;
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let question = json!({
        "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": {"mode": "form", "message": "Who?", "requestedSchema": schema},
    });
    process.say(question).await;
    let refused = process.answer(&json!("q")).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("did not declare elicitation"), "{refused}");
    let error = json!({"code": -32603, "message": "nothing can be asked"});
    process.refuse(&call, error).await;
    let failed = answer(&plexus, &json!("c"));
    assert_eq!(failed["error"]["code"], -32021, "{failed}");
    let needed = &failed["error"]["data"]["requiredCapabilities"];
    assert!(needed["elicitation"].is_object(), "{failed}");
    assert_eq!(plexus.end().code, Some(0));
}

/// A server with a session for each caller is asked in a session that has the capabilities of the
/// client.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_session_for_each_caller_is_asked_in_one() {
    let whole = Offer::tools(Revision::V2025_11_25, [tool("work"), tool("ask")]);
    let server = StdioServer::new(Script::from(&whole).on("tools/list", [])).await;
    let mut definition = definition(&server);
    definition["affinity"] = json!("principal");
    let home = Home::with(&[(".mcp.json", &file(&[("s", definition)]))]);
    let mut plexus = home.start(&["serve", "--stdio", "--builtin", "none"]);
    plexus.send(&request("l", "tools/list", json!({}), &json!({})));

    // The catalogue is that of a client with all capabilities.
    let process = server.process().await;
    let list = process.received("tools/list").await;
    let tools = whole.answer("tools/list").unwrap();
    process.reply(&list, tools).await;
    let process = server.process().await;
    let greeting = process.received("initialize").await;
    assert_eq!(greeting["params"]["capabilities"], json!({}), "{greeting}");
    let list = process.received("tools/list").await;
    process.reply(&list, json!({"tools": [tool("work")]})).await;
    let page = answer(&plexus, &json!("l"));
    let tools = page["result"]["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["s__work"], "{page}");
    assert_eq!(plexus.end().code, Some(0));
}
