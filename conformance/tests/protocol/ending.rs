//! Graceful shutdown: when the client closes its pipe, and when the server gets SIGTERM.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, HttpClient, ListeningServer, StdioClient};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{
    SERVER, call, listening, mirrored, request, session, stateless, stdio, stdio_session, text,
};

/// S002-05, STDIO-13: after the pipe is closed, calls in flight are finished before the exit.
#[tokio::test]
async fn closing_the_pipe_drains_calls_in_flight() {
    let mut pipe = stdio_session(Revision::V2025_06_18).await;
    for (id, ms) in [(1, 300), (2, 100), (3, 200)] {
        pipe.send(&request(
            id,
            "tools/call",
            call("test_slow", json!({"ms": ms})),
        ))
        .await;
    }
    pipe.send(&stateless(
        4,
        "tools/call",
        call("test_slow", json!({"ms": 250})),
    ))
    .await;
    let (rest, exit) = pipe.finish().await;
    let mut ids: Vec<_> = rest
        .iter()
        .map(|answer| answer["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert!(rest.iter().all(|answer| answer.get("result").is_some()));
    assert_eq!(exit.code, Some(0));
}

/// Calls that wait for an answer, and subscriptions, do not delay the exit after a disconnect.
#[tokio::test]
async fn closing_the_pipe_ends_questions_and_subscriptions() {
    let mut pipe = stdio();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "n", "version": "1"}});
    pipe.send(&request(0, "initialize", params)).await;
    pipe.receive().await;
    pipe.send(&crate::support::notification("notifications/initialized"))
        .await;
    let asking = call("test_elicitation", json!({"message": "Who?"}));
    pipe.send(&request(1, "tools/call", asking)).await;
    assert_eq!(pipe.receive().await["method"], "elicitation/create");
    let filter = json!({"notifications": {"toolsListChanged": true}});
    pipe.send(&stateless(2, "subscriptions/listen", filter))
        .await;
    let acknowledged = pipe.receive().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let (rest, exit) = pipe.finish().await;
    for message in rest {
        assert_ne!(message["id"], 2, "{message}");
        assert_ne!(message["method"], "elicitation/create", "{message}");
    }
    assert_eq!(exit.code, Some(0));
}

/// A last line without a line break is answered. A pipe that is closed at once is no error.
#[tokio::test]
async fn a_pipe_may_be_closed_at_any_time() {
    let (rest, exit) = stdio().finish().await;
    assert_eq!((rest, exit.code), (vec![], Some(0)));
    let mut pipe = stdio_session(Revision::V2025_11_25).await;
    pipe.send_unfinished(&request("last", "ping", json!({})))
        .await;
    let (rest, exit) = pipe.finish().await;
    assert_eq!(rest.len(), 1);
    assert_eq!((&rest[0]["id"], exit.code), (&json!("last"), Some(0)));
}

/// STDIO-02, S000-06, S002-04: logs go to standard error. The client checks that every line of
/// standard output is a message.
#[tokio::test]
async fn nothing_but_messages_is_written_to_standard_output() {
    let pipe = StdioClient::spawn(SERVER, &["--stdio", "--log-level", "trace"]);
    let mut client = Client::stdio(pipe, Revision::V2025_06_18, json!({}));
    client.open().await;
    client.call("test_simple_text", json!({})).await;
    client.error("unknown/method", json!({})).await;
    client.call("test_tool_with_logging", json!({})).await;
    client.notify("notifications/unknown", None).await;
    client.close().await;
}

/// SUB26-11: on SIGTERM, subscriptions are ended by messages, and calls in flight are finished.
#[tokio::test]
async fn a_pipe_that_is_asked_to_stop_ends_properly() {
    let mut pipe = stdio();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    pipe.send(&stateless("sub", "subscriptions/listen", filter))
        .await;
    pipe.receive().await;
    let slow = call("test_slow", json!({"ms": 300}));
    pipe.send(&stateless("slow", "tools/call", slow)).await;
    // When this request is answered, the call before it has started.
    pipe.send(&stateless("list", "tools/list", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], "list");
    terminate(pipe.pid());
    let cancelled = pipe.receive().await;
    let ended = pipe.receive().await;
    let answered = pipe.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], "sub");
    assert_eq!(subscription(&ended), "sub");
    assert_eq!(text(&answered["result"]), "Slept for 300 ms");
    let (rest, exit) = pipe.finish().await;
    assert_eq!((rest, exit.code), (vec![], Some(0)));
}

/// SUB26-11, HTTP26-10: the same over HTTP. The GET stream of a legacy session is closed, too.
#[tokio::test]
async fn an_http_server_that_is_asked_to_stop_ends_properly() {
    let server = listening(&[]).await;
    let modern = HttpClient::new(server.url(), Revision::V2026_07_28);
    let legacy = session(server.url(), Revision::V2025_06_18).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = stateless(7, "subscriptions/listen", filter);
    let mut subscribed = mirrored(&modern, &listen).send().await;
    subscribed.next_message().await.unwrap();
    let mut stream = legacy.get().send().await;
    let mut slow = call("test_tool_with_progress", json!({}));
    slow["_meta"] = json!({"progressToken": 1});
    let mut running = legacy.post(&request(1, "tools/call", slow)).send().await;
    running.next_message().await.unwrap();

    terminate(server.pid());
    let ended = subscribed.next_message().await.unwrap();
    assert_eq!(ended["id"], 7);
    assert_eq!(subscription(&ended), 7);
    assert_eq!(subscribed.next_message().await, None);
    assert_eq!(stream.next_message().await, None);
    let rest = running.messages().await;
    let answer = rest.last().unwrap();
    assert_eq!(
        text(&answer["result"]),
        "Tool with progress executed successfully"
    );
    assert_eq!(ListeningServer::exit(server).await.code, Some(0));
}

fn subscription(ended: &Value) -> &Value {
    &ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

fn terminate(pid: Option<u32>) {
    let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().unwrap()));
    kill_process(pid.unwrap(), Signal::TERM).unwrap();
}
