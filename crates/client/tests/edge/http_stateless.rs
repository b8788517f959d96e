//! Streamable HTTP of 2026-07-28.

use std::sync::Mutex;

use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    Caller, STATELESS, call, call_fails, call_tool, catalogue, connected, http, value,
};

fn regional(header: &str) -> Value {
    json!({"name": "a", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": header},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "plain": {"type": "string"}}}})
}

async fn server(
    tools: Vec<Value>,
    otherwise: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
) -> HttpServer {
    let offer = Offer::tools(STATELESS, tools);
    HttpServer::start(move |request| {
        otherwise(request).unwrap_or_else(|| match request.mcp() {
            "tools/call" | "resources/read" | "prompts/get" | "completion/complete" => {
                let result = json!({"resultType": "complete", "content": []});
                Reply::json(&request.result(&result))
            }
            _ => request.reply_from(&offer),
        })
    })
    .await
}

/// HDR26-01, HDR26-03, HDR26-09, HDR26-12: headers mirror the body. Values that are not valid in a
/// header are encoded, and absent values have no header.
#[tokio::test]
async fn headers_mirror_the_body() {
    let server = server(vec![regional("Region")], |_| None).await;
    let upstream = connected(http(&server)).await;
    let arguments = json!({"region": "eu \u{fc}", "count": 42, "dry": false, "plain": "x"});
    let params = json!({"name": "a", "arguments": arguments});
    within("the result", call(&upstream, "tools/call", &params))
        .await
        .unwrap();
    let sent = server.received("tools/call").await;
    assert_eq!(sent.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(sent.header("mcp-method"), Some("tools/call"));
    assert_eq!(sent.header("mcp-name"), Some("a"));
    assert_eq!(sent.header("mcp-param-region"), Some("=?base64?ZXUgw7w=?="));
    assert_eq!(sent.header("mcp-param-count"), Some("42"));
    assert_eq!(sent.header("mcp-param-dry"), Some("false"));
    assert_eq!(sent.header("mcp-param-plain"), None);
    assert_eq!(sent.body["params"]["arguments"], arguments);

    let params = json!({"name": "a", "arguments": {"region": null}});
    within("the result", call(&upstream, "tools/call", &params))
        .await
        .unwrap();
    let sent = server.received("tools/call").await;
    assert!(
        !sent
            .headers
            .keys()
            .any(|name| name.as_str().starts_with("mcp-param-"))
    );
}

/// HDR26-03, HDR26-04: `Mcp-Name` is taken from the member that names the tool, prompt or resource.
#[tokio::test]
async fn the_name_header_follows_the_method() {
    let server = server(vec![], |_| None).await;
    let upstream = connected(http(&server)).await;
    let cases = [
        (
            "tools/call",
            json!({"name": "\u{e4}"}),
            Some("=?base64?w6Q=?="),
        ),
        ("prompts/get", json!({"name": "p"}), Some("p")),
        (
            "resources/read",
            json!({"uri": "file:///x y"}),
            Some("file:///x y"),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}}),
            None,
        ),
    ];
    for (method, params, expected) in cases {
        within(method, call(&upstream, method, &params))
            .await
            .unwrap();
        let sent = server.received(method).await;
        assert_eq!(sent.header("mcp-name"), expected, "{method}");
        assert_eq!(sent.header("mcp-method"), Some(method));
    }
}

/// HTTP26-04, HTTP26-18, HTTP26-19: no session header, no GET stream, no DELETE.
#[tokio::test]
async fn a_stateless_server_hears_of_no_session() {
    let server = server(vec![tool("a")], |request| {
        let reply = Reply::json(&request.result(&json!({"resultType": "complete"})));
        (request.mcp() == "tools/call").then(|| reply.with_header("mcp-session-id", "odd"))
    })
    .await;
    let upstream = connected(http(&server)).await;
    call_tool(&upstream, "a").await;
    call_tool(&upstream, "a").await;
    within("the end", upstream.disconnect()).await;
    for request in server.all() {
        assert_eq!(request.method, ::http::Method::POST);
        assert_eq!(request.header("mcp-session-id"), None);
    }
}

fn mismatch(request: &Received) -> Reply {
    let error = request.error(-32020, "header mismatch");
    Reply::status(400).with_json(&error.to_string())
}

/// HDR26-15: after a header mismatch, the tools are listed again, and the call is sent once more.
#[tokio::test]
async fn a_header_mismatch_is_met_with_a_fresh_list() {
    let lists = Mutex::new(0);
    let server = server(vec![], move |request| match request.mcp() {
        "tools/list" => {
            let mut lists = lists.lock().unwrap();
            *lists += 1;
            let header = if *lists == 1 { "Old" } else { "New" };
            let result = json!({"resultType": "complete", "tools": [regional(header)]});
            Some(Reply::json(&request.result(&result)))
        }
        "tools/call" if request.header("mcp-param-new").is_none() => Some(mismatch(request)),
        _ => None,
    })
    .await;
    let upstream = connected(http(&server)).await;
    let params = json!({"name": "a", "arguments": {"region": "eu"}});
    within("the result", call(&upstream, "tools/call", &params))
        .await
        .unwrap();
    let first = server.received("tools/call").await;
    let second = server.received("tools/call").await;
    assert_eq!(first.header("mcp-param-old"), Some("eu"));
    assert_eq!(second.header("mcp-param-new"), Some("eu"));
    assert_ne!(first.body["id"], second.body["id"]);
    let kept = catalogue(&upstream);
    let kept = kept.list(plexus_mcp_core::Section::Tools).get("a").unwrap();
    assert!(kept.definition.as_str().contains("New"));
}

#[tokio::test]
async fn a_header_mismatch_that_stays_is_an_error() {
    let server = server(vec![regional("Region")], |request| {
        (request.mcp() == "tools/call").then(|| mismatch(request))
    })
    .await;
    let upstream = connected(http(&server)).await;
    call_fails(&upstream, "a").await;
    let methods = server.methods();
    let calls = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 2);
}

/// HTTP26-17: JSON-RPC errors are read from responses of any HTTP status.
#[tokio::test]
async fn errors_are_read_whatever_their_status() {
    for (status, code) in [
        (400, -32602),
        (404, -32601),
        (400, -32021),
        (500, -32603),
        (200, 7),
    ] {
        let server = server(vec![tool("a")], move |request| {
            let error = request.error(code, "that is why").to_string();
            (request.mcp() == "tools/call").then(|| Reply::status(status).with_json(&error))
        })
        .await;
        let upstream = connected(http(&server)).await;
        let failure = call_fails(&upstream, "a").await;
        assert!(failure.contains("that is why"), "{failure}");
    }
}

/// HTTP26-21: a broken stream cannot be resumed; the call fails, and is not sent again.
#[tokio::test]
async fn a_broken_stream_ends_the_call() {
    let server = server(vec![tool("a")], |request| {
        let events = "id: 1\nretry: 1\ndata:\n\n";
        (request.mcp() == "tools/call")
            .then(|| Reply::status(200).with_body("text/event-stream", events))
    })
    .await;
    let upstream = connected(http(&server)).await;
    call_fails(&upstream, "a").await;
    let methods = server.methods();
    let calls = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 1);
    assert!(!server.all().iter().any(|r| r.method == ::http::Method::GET));
}

/// Notifications on the stream of a call are that call's.
#[tokio::test]
async fn a_stream_brings_progress_and_then_the_result() {
    let server = server(vec![tool("a")], |request| {
        let token = &request.body["params"]["_meta"]["progressToken"];
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1}});
        let result = request.result(&json!({"resultType": "complete", "content": [], "n": 1}));
        (request.mcp() == "tools/call").then(|| Reply::events(&[progress, result]))
    })
    .await;
    let upstream = connected(http(&server)).await;
    let caller = Caller {
        progress: true,
        ..Caller::default()
    };
    let (calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let result = within("the result", calling).await.unwrap();
    assert_eq!(value(&result)["n"], 1);
    assert!(matches!(
        events.try_recv(),
        Some(plexus_mcp_core::Event::Progress(_))
    ));
}
