//! Chats in the background.

use std::fs;

use plexus_testkit::ForeignProcess;
use serde_json::{Value, json};

use crate::support::{Server, failure};

async fn begin(server: &Server, query: &str) -> Value {
    let asked = json!({ "session_name": "s", "query": query });
    let started = server.call("claudecode.chat_async", asked).await;
    assert_eq!(started["structuredContent"]["session_name"], "s");
    started["structuredContent"]["stream_id"].clone()
}

/// Polls the events from `from` on; waits until there are some.
async fn poll(server: &Server, stream: &Value, from: &Value) -> Value {
    let since = json!({ "stream_id": stream, "from_seq": from, "wait_ms": 30_000 });
    let polled = server.call("claudecode.poll", since).await;
    polled["structuredContent"].clone()
}

/// Polls until the chat has this status, and returns all events.
async fn until(server: &Server, stream: &Value, status: &str) -> Value {
    let mut next = json!(0);
    loop {
        let polled = poll(server, stream, &next).await;
        if polled["status"] == status {
            return poll(server, stream, &json!(0)).await;
        }
        next = polled["next_seq"].clone();
    }
}

#[tokio::test]
async fn a_chat_is_polled_piece_by_piece() {
    let server = Server::new();
    server.session().await;
    let stream = begin(&server, "wait").await;
    let listed = server.call("claudecode.streams", json!({})).await;
    let listed = &listed["structuredContent"]["streams"][0];
    assert_eq!(
        [&listed["stream_id"], &listed["status"]],
        [&stream, &json!("running")]
    );
    fs::write(server.work().join("go"), "").unwrap();
    let all = until(&server, &stream, "complete").await;
    let kinds: Vec<_> = all["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["start", "content", "complete"]);
    assert_eq!(all["next_seq"], 3);

    let some = json!({ "stream_id": stream, "from_seq": 1, "limit": 1 });
    let part = server.call("claudecode.poll", some).await;
    let part = &part["structuredContent"];
    assert_eq!(
        part["events"],
        json!([{ "type": "content", "text": "waiting" }])
    );
    assert_eq!([&part["from_seq"], &part["next_seq"]], [1, 2]);
    let rest = poll(&server, &stream, &json!(3)).await;
    assert_eq!(rest["events"], json!([]));
    assert_eq!(rest["status"], "complete");
}

#[tokio::test]
async fn failures_and_unknown_streams_are_reported() {
    let server = Server::new();
    server.session().await;
    let stream = begin(&server, "fail").await;
    let failed = until(&server, &stream, "failed").await;
    let last = failed["events"].as_array().unwrap().last().unwrap();
    assert!(
        last["message"]
            .as_str()
            .unwrap()
            .contains("Invalid API key")
    );
    let unknown = server
        .call("claudecode.poll", json!({ "stream_id": "x" }))
        .await;
    assert!(failure(&unknown).starts_with("there is no stream x"));
}

/// Deleting a session ends its running chat.
#[tokio::test]
async fn deleting_a_session_ends_its_chat() {
    let server = Server::new();
    server.session().await;
    let stream = begin(&server, "hang").await;
    let said = poll(&server, &stream, &json!(1)).await;
    let ids = said["events"][0]["text"].as_str().unwrap();
    let deleted = server
        .call("claudecode.delete", json!({ "name": "s" }))
        .await;
    assert_eq!(deleted["structuredContent"], json!({ "deleted": "s" }));
    for id in ids.split(' ') {
        ForeignProcess::of(id).ended().await;
    }
    until(&server, &stream, "failed").await;
}

/// A chat that waits for a permission reports the status, and any client can answer.
#[tokio::test]
async fn a_permission_is_waited_for() {
    let server = Server::new();
    server.session().await;
    let stream = begin(&server, "permit").await;
    let waiting = until(&server, &stream, "awaiting_permission").await;
    let asked = waiting["events"].as_array().unwrap().last().unwrap();
    assert_eq!(asked["tool_name"], "Bash");
    let response = json!({ "approval_id": asked["approval_id"], "approve": true });
    server.call("loopback.respond", response).await;
    let all = until(&server, &stream, "complete").await;
    assert!(all.to_string().contains("behavior:allow"), "{all}");
}
