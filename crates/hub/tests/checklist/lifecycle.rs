//! Whole lifecycles of servers, from connecting to closing, and the results of their tools.

use plexus_mcp_client::ServerState;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    LEGACY, call, call_tool, echoing, hub_of, member, missing, resources_become, state, status,
    tool_fails, tools, try_tool,
};

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A server whose only tool returns this.
async fn returning(result: &Value) -> StdioServer {
    let script = Script::from(&Offer::tools(LEGACY, [tool("t")]));
    StdioServer::new(script.on("tools/call", [Step::Result(result.clone())])).await
}

/// S004-K084, S004-63: a server is connected, listed, called, read from, and closed.
#[tokio::test]
async fn a_server_from_beginning_to_end() {
    let found = json!({"content": [text("found 3 items")]});
    let contents = json!({"contents": [{"uri": "file:///readme.md", "text": "# Hello"}]});
    let mut offer =
        Offer::tools(LEGACY, [tool("search"), tool("read_file")]).declaring("resources", json!({}));
    offer.resources = vec![json!({"uri": "file:///readme.md", "name": "readme"})];
    let script = Script::from(&offer)
        .on("tools/call", [Step::Result(found.clone())])
        .on("resources/read", [Step::Result(contents.clone())]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("test-server", &server)]).await;
    assert_eq!(
        tools(&hub),
        ["test-server__search", "test-server__read_file"]
    );
    assert_eq!(state(&hub, "test-server"), ServerState::Connected);
    assert_eq!(
        status(&hub, "test-server").unwrap().tools.entries().len(),
        2
    );

    let params = json!({"name": "mcp__test-server__search", "arguments": {"query": "test"}});
    assert_eq!(call(&hub, "tools/call", params).await, Ok(found));
    resources_become(&hub, &["file:///readme.md"]).await;
    let read = call(&hub, "resources/read", json!({"uri": "file:///readme.md"})).await;
    assert_eq!(read, Ok(contents));

    let process = server.process().await;
    within("the end", hub.close()).await;
    process.ended().await;
    assert_eq!(tools(&hub), [""; 0]);
}

/// S004-K085: several servers, one of which is removed before the others.
#[tokio::test]
async fn several_servers() {
    let (one, other) = (
        StdioServer::new(echoing(&["tool_a"])).await,
        StdioServer::new(echoing(&["tool_b", "tool_c"])).await,
    );
    let hub = hub_of(vec![member("one", &one), member("other", &other)]).await;
    assert_eq!(tools(&hub).len(), 3);
    hub.set_members(vec![member("other", &other)]).await;
    assert_eq!(tools(&hub), ["other__tool_b", "other__tool_c"]);
    within("the end", hub.close()).await;
    assert_eq!(tools(&hub), [""; 0]);
}

/// S004-K017, S004-K088: a tool that fails returns a result with `isError`.
#[tokio::test]
async fn a_failed_tool_is_a_result() {
    let failed = json!({"content": [text("something went wrong")], "isError": true});
    let server = returning(&failed).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    assert_eq!(call_tool(&hub, "s__t").await, failed);
}

/// S004-K016, S004-K089: all blocks of a result arrive, in order and unchanged.
#[tokio::test]
async fn several_blocks_arrive_as_they_are() {
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let blocks = [text("line 1"), text("line 2"), image];
    let server = returning(&json!({"content": blocks})).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    assert_eq!(call_tool(&hub, "s__t").await["content"], json!(blocks));
}

/// S004-K102: an empty tool result is not a failure.
#[tokio::test]
async fn an_empty_result_is_no_failure() {
    let empty = json!({"content": []});
    let server = returning(&empty).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    assert_eq!(call_tool(&hub, "s__t").await, empty);
}

/// S004-K097: a tool of a server that is not connected cannot be called, and its status says why.
#[tokio::test]
async fn without_a_connection_there_is_no_call() {
    let hub = hub_of(vec![missing("s")]).await;
    tool_fails(&hub, "s__t").await;
    let status = status(&hub, "s").unwrap().status.unwrap();
    let reason = status.reason.unwrap();
    assert!(reason.contains("no-such-mcp-server"), "{reason}");
}

/// S004-K057, S004-K103: the server validates the arguments, and its error text reaches the caller.
#[tokio::test]
async fn arguments_are_judged_by_their_server() {
    let needy = json!({"name": "t", "inputSchema": {"type": "object", "required": ["query"],
        "properties": {"query": {"type": "string"}}}});
    let refusal = json!({"code": -32602, "message": "query is missing"});
    let script = Script::from(&Offer::tools(LEGACY, [needy]))
        .on("tools/call", [Step::Error(refusal)])
        .then("tools/call", [Step::Echo]);
    let server = StdioServer::new(script).await;
    let hub = hub_of(vec![member("s", &server)]).await;
    let fault = try_tool(&hub, "s__t").await.unwrap_err().to_string();
    assert!(fault.contains("query is missing"), "{fault}");
    let params = json!({"name": "s__t", "arguments": {"query": "hello"}});
    let result = call(&hub, "tools/call", params).await.unwrap();
    assert_eq!(result["echo"]["arguments"], json!({"query": "hello"}));
}
