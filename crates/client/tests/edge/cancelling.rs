//! Cancelled calls.

use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, tool};
use plexus_testkit::within;
use serde_json::json;

use crate::support::{
    LEGACY, SHORT, STATELESS, call, call_tool, connected, during, http, refused, stdio,
};

const CANCELLED: &str = "notifications/cancelled";

/// S004-36, CAN-09, CAN-10, CAN-13, C34, S004-K032: cancellation by message, with the same request
/// id.
#[tokio::test]
async fn a_dropped_call_is_cancelled_over_stdio() {
    for revision in [LEGACY, STATELESS] {
        let script = Script::from(&Offer::tools(revision, [tool("a")]));
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        for method in ["tools/call", "resources/read", "completion/complete"] {
            let mut calling = call(&upstream, method, &json!({"name": "a", "uri": "a://b"}));
            let request = during(&mut calling, process.received(method)).await;
            drop(calling);
            let cancelled = process.received(CANCELLED).await;
            assert_eq!(cancelled["params"]["requestId"], request["id"]);
            assert!(request["id"].is_i64());
        }
    }
}

/// A call that was answered is not cancelled.
#[tokio::test]
async fn an_answered_call_is_not_cancelled() {
    let script = Script::from(&Offer::tools(LEGACY, [tool("a")]));
    let script = script.on("tools/call", [plexus_testkit::server::Step::Echo]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    call_tool(&upstream, "a").await;
    call_tool(&upstream, "a").await;
    let process = server.process().await;
    process.received("tools/call").await;
    process.received("tools/call").await;
    assert!(!process.methods().await.contains(&CANCELLED.to_owned()));
}

/// HTTPLC-04, S004-K043: closing the stream does not cancel, so `notifications/cancelled` is sent,
/// with the session id.
#[tokio::test]
async fn a_dropped_call_is_cancelled_over_http_of_the_old_era() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" => Reply::never(),
        "initialize" => request
            .reply_from(&offer)
            .with_header("mcp-session-id", "s1"),
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, server.received("tools/call")).await;
    drop(calling);
    let cancelled = server.received(CANCELLED).await;
    assert_eq!(cancelled.body["params"]["requestId"], request.body["id"]);
    assert_eq!(cancelled.header("mcp-session-id"), Some("s1"));
    request.given_up().await;
}

/// CAN-10, S004-K043: closing the stream is the only cancellation.
#[tokio::test]
async fn a_dropped_call_is_cancelled_over_stateless_http_by_closing_its_stream() {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let streams = std::sync::Mutex::new(Vec::new());
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" if request.body["params"]["name"] == "streams" => {
            let (reply, stream) = Reply::stream();
            stream.write_now(": here\n\n");
            streams.lock().unwrap().push(stream);
            reply
        }
        "tools/call" => Reply::never(),
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    for name in ["silent", "streams"] {
        let mut calling = call(&upstream, "tools/call", &json!({"name": name}));
        let request = during(&mut calling, server.received("tools/call")).await;
        drop(calling);
        request.given_up().await;
    }
    assert!(!server.methods().contains(&CANCELLED.to_owned()));
}

/// CAN-02: `initialize` is never cancelled, neither at a timeout nor when the connect is dropped.
#[tokio::test]
async fn the_greeting_is_never_cancelled() {
    let script = Script::from(&Offer::new(LEGACY)).ignoring("initialize");
    let server = StdioServer::new(script).await;
    let mut definition = stdio(&server);
    definition.timeouts.connect = SHORT;
    refused(definition.clone()).await;
    let process = server.process().await;
    process.ended().await;
    assert!(!process.methods().await.contains(&CANCELLED.to_owned()));

    definition.timeouts.connect = plexus_testkit::TEST_TIMEOUT;
    let upstream = plexus_mcp_client::Upstream::new(definition);
    let mut connecting = Box::pin(upstream.connect());
    let process = tokio::select! {
        process = async {
            let process = server.process().await;
            process.received("initialize").await;
            process
        } => process,
        _ = &mut connecting => panic!("no server answered"),
    };
    drop(connecting);
    drop(upstream);
    within("the process to end", process.ended()).await;
    assert!(!process.methods().await.contains(&CANCELLED.to_owned()));
}

/// TRAP-24: only the server of the call receives the cancellation.
#[tokio::test]
async fn a_cancellation_reaches_its_own_server_only() {
    let script = Script::from(&Offer::tools(LEGACY, [tool("a")]));
    let one = StdioServer::new(script.clone()).await;
    let other = StdioServer::new(script).await;
    let (first, second) = (connected(stdio(&one)).await, connected(stdio(&other)).await);
    let (one, other) = (one.process().await, other.process().await);
    let mut dropped = call(&first, "tools/call", &json!({"name": "a"}));
    let mut kept = call(&second, "tools/call", &json!({"name": "a"}));
    during(&mut dropped, one.received("tools/call")).await;
    let request = during(&mut kept, other.received("tools/call")).await;
    drop(dropped);
    one.received(CANCELLED).await;
    other.reply(&request, json!({})).await;
    within("the other answer", kept).await.unwrap();
    assert!(!other.methods().await.contains(&CANCELLED.to_owned()));
}
