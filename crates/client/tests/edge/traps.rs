//! Known failures of other gateways that the other files here do not cover.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ::http::{HeaderValue, Method};
use plexus_mcp_client::{ServerState, Target};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    Caller, LEGACY, STATELESS, asked, call, call_fails, call_tool, connected, during, http,
    minimal, raw, revision, status, stdio, target, tools, tools_become,
};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

fn count(server: &HttpServer, method: &str) -> usize {
    let methods = server.methods();
    methods.iter().filter(|named| *named == method).count()
}

/// TRAP-06: a server that refuses requests with a version in `_meta` is of the handshake era. It
/// never gets that member again, even if a caller sends it.
#[tokio::test]
async fn a_server_that_refuses_all_metadata_of_versions_is_usable() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| {
        if request.body["params"]["_meta"].get(VERSION_KEY).is_some() {
            return Reply::status(400).with_body("text/plain", "Bad Request: unsupported");
        }
        match request.mcp() {
            "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
            _ => request.reply_from(&offer),
        }
    })
    .await;
    let upstream = connected(http(&server)).await;
    assert_eq!(revision(&upstream), LEGACY);
    assert_eq!(tools(&upstream), ["a"]);
    let params = json!({"name": "a", "_meta": {VERSION_KEY: "2026-07-28", "kept": 1}});
    let outcome = within("the result", call(&upstream, "tools/call", &params)).await;
    outcome.unwrap();
    let called = server.received("tools/call").await;
    assert_eq!(called.body["params"]["_meta"]["kept"], 1);
}

/// TRAP-09: a server may have executed the call before it came back in another era. So the call
/// fails, and is not retried.
#[tokio::test]
async fn a_call_is_not_made_again_when_the_era_changed() {
    for (before, after) in [(STATELESS, LEGACY), (LEGACY, STATELESS)] {
        let replaced = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&replaced);
        let server = HttpServer::start(move |request: &Received| {
            let is_new = seen.load(Ordering::Relaxed);
            let offer = Offer::tools(if is_new { after } else { before }, [tool("a")]);
            let is_call = request.mcp() == "tools/call";
            match (is_new, is_call) {
                // The old server closes the connection during the call.
                (false, true) => {
                    seen.store(true, Ordering::Relaxed);
                    Reply::hang_up()
                }
                (true, true) => Reply::json(&request.result(&json!({"content": []}))),
                _ => request.reply_from(&offer),
            }
        })
        .await;
        let upstream = connected(http(&server)).await;
        assert_eq!(revision(&upstream), before);
        call_fails(&upstream, "a").await;
        assert_eq!(count(&server, "tools/call"), 1, "{before}");
        upstream.reconnect().await.unwrap();
        assert_eq!(revision(&upstream), after);
        assert_eq!(count(&server, "tools/call"), 1, "{before}");
        call_tool(&upstream, "a").await;
        assert_eq!(count(&server, "tools/call"), 2, "{before}");
    }
}

/// TRAP-15: a list is fetched again with the same session and credentials.
#[tokio::test]
async fn lists_are_fetched_anew_as_the_same_caller() {
    let offer = Offer::tools(LEGACY, []);
    let (streams, mut opened) = tokio::sync::mpsc::channel(1);
    let lists = AtomicUsize::new(0);
    let server = HttpServer::start(move |request| {
        if request.method == Method::GET {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            return reply;
        }
        match request.mcp() {
            "initialize" => request
                .reply_from(&offer)
                .with_header("mcp-session-id", "s1"),
            "tools/list" => {
                let number = lists.fetch_add(1, Ordering::Relaxed);
                let tools = [tool(&format!("t{number}"))];
                Reply::json(&request.result(&json!({"tools": tools})))
            }
            _ => request.reply_from(&offer),
        }
    })
    .await;
    let mut target = target(&server.url());
    let key = HeaderValue::from_static("Bearer secret");
    target.headers.insert("authorization", key);
    let upstream = connected(minimal(Target::Http(target))).await;
    let stream = within("the stream", opened.recv()).await.unwrap();
    stream
        .say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        .await;
    tools_become(&upstream, &["t1"]).await;
    for _ in 0..2 {
        let list = server.received("tools/list").await;
        assert_eq!(list.header("mcp-session-id"), Some("s1"));
        assert_eq!(list.header("authorization"), Some("Bearer secret"));
        assert_eq!(list.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

/// TRAP-17: two callers share a program, and its questions do not name a call. A question that may
/// belong to either call is refused. After that, calls of different callers do not overlap, and
/// each question is sent to the caller of the call in flight.
#[tokio::test]
async fn a_question_reaches_the_one_whose_call_it_is() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let callers = [
        Caller::able(json!({"elicitation": {}})),
        Caller::able(json!({"elicitation": {}})),
    ];
    let question = |id: &str| {
        let schema = json!({"type": "object", "properties": {}});
        let form = json!({"message": "Who?", "requestedSchema": schema});
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form})
    };
    let named = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let params = |who: &str| json!({"name": "a", "arguments": {"who": who}});
    let done = json!({"content": []});

    let (mut one, mut events_of_one) = callers[0].call(&upstream, "tools/call", &params("one"));
    let first = during(&mut one, process.received("tools/call")).await;
    let (mut other, mut events_of_other) =
        callers[1].call(&upstream, "tools/call", &params("other"));
    let second = during(&mut other, process.received("tools/call")).await;
    process.say(question("unclear")).await;
    let refused = during(&mut one, process.answer(&json!("unclear"))).await;
    assert!(refused["error"].is_object(), "{refused}");
    for request in [&first, &second] {
        process.reply(request, done.clone()).await;
    }
    let (one, other) = within("both results", async { tokio::join!(one, other) }).await;
    assert!(one.is_ok() && other.is_ok());
    assert!(events_of_one.try_recv().is_none() && events_of_other.try_recv().is_none());

    let (mut one, mut events_of_one) = callers[0].call(&upstream, "tools/call", &params("one"));
    let (mut other, mut events_of_other) =
        callers[1].call(&upstream, "tools/call", &params("other"));
    let first = during(&mut one, process.received("tools/call")).await;
    // Once the program reports its messages, a second call would have arrived.
    let sent = during(&mut other, process.all()).await;
    let calls = sent.iter().filter(|sent| sent["method"] == "tools/call");
    assert_eq!(calls.count(), 3, "the other call waits");
    process.say(question("q1")).await;
    let ask = asked(&mut one, &mut events_of_one).await;
    ask.answer(Ok(raw(&named("one"))));
    let answer = during(&mut one, process.answer(&json!("q1"))).await;
    assert_eq!(answer["result"], named("one"));
    process.reply(&first, done.clone()).await;
    within("the first result", one).await.unwrap();
    assert!(events_of_other.try_recv().is_none());

    let second = during(&mut other, process.received("tools/call")).await;
    assert_eq!(second["params"]["arguments"]["who"], "other");
    process.say(question("q2")).await;
    let ask = asked(&mut other, &mut events_of_other).await;
    ask.answer(Ok(raw(&named("other"))));
    let answer = during(&mut other, process.answer(&json!("q2"))).await;
    assert_eq!(answer["result"], named("other"));
    process.reply(&second, done).await;
    within("the second result", other).await.unwrap();
}

/// TRAP-08: the `serverInfo` of a server is removed from its results.
#[tokio::test]
async fn server_info_is_removed_from_results() {
    let spoofed = json!({"content": [], "_meta": {"kept": 1,
        "io.modelcontextprotocol/serverInfo": {"name": "plexus", "version": "0"}}});
    for revision in [LEGACY, STATELESS] {
        let offer = Offer::tools(revision, [tool("a")]);
        let result = spoofed.clone();
        let server = HttpServer::start(move |request| match request.mcp() {
            "tools/call" => Reply::json(&request.result(&result)),
            _ => request.reply_from(&offer),
        })
        .await;
        let upstream = connected(http(&server)).await;
        let result = call_tool(&upstream, "a").await;
        assert_eq!(result["_meta"], json!({"kept": 1}), "{revision}");
    }
}

/// TRAP-40: some servers answer 400 instead of 404 for an unknown session. The call did not run, so
/// a new session is opened once, and the call is sent again.
#[tokio::test]
async fn a_session_that_is_forgotten_with_400_is_opened_anew() {
    let bodies = [
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found"},"id":null}"#,
        "Invalid session ID",
        "Session expired",
    ];
    for body in bodies {
        let sessions = AtomicUsize::new(0);
        let offer = Offer::tools(LEGACY, [tool("a")]);
        let server = HttpServer::start(move |request| {
            let forgotten = request.header("mcp-session-id") == Some("s1");
            match request.mcp() {
                "initialize" => {
                    let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
                    let session = format!("s{number}");
                    request
                        .reply_from(&offer)
                        .with_header("mcp-session-id", &session)
                }
                "tools/call" if forgotten => Reply::status(400).with_json(body),
                "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
                _ => request.reply_from(&offer),
            }
        })
        .await;
        let upstream = connected(http(&server)).await;
        call_tool(&upstream, "a").await;
        assert_eq!(count(&server, "initialize"), 2, "{body}");
        assert_eq!(count(&server, "tools/call"), 2, "{body}");
        assert_eq!(status(&upstream).state, ServerState::Connected);
    }
}

/// TRAP-40: a 400 whose body is a JSON-RPC error for the call is the response, whatever its text.
/// The call is not sent again.
#[tokio::test]
async fn other_errors_with_400_are_answers() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" => request
            .reply_from(&offer)
            .with_header("mcp-session-id", "s1"),
        "tools/call" => {
            let error: Value = request.error(-32602, "the session of the user has no seats left");
            Reply::status(400).with_json(&error.to_string())
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("no seats left"), "{failure}");
    assert_eq!(count(&server, "tools/call"), 1);
    assert_eq!(count(&server, "initialize"), 1);
}
