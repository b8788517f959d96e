//! Chats in the background.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Server, failure, gone};

async fn begin(server: &Server, query: &str) -> Value {
    let asked = json!({ "session_name": "s", "query": query });
    let started = server.call("claudecode.chat_async", asked).await;
    assert_eq!(started["structuredContent"]["session_name"], "s");
    started["structuredContent"]["stream_id"].clone()
}

/// Gives the chat a moment to go on, and polls it.
async fn poll(server: &Server, arguments: Value) -> Value {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let polled = server.call("claudecode.poll", arguments).await;
    polled["structuredContent"].clone()
}

/// Polls until the chat is in this state.
async fn until(server: &Server, stream: &Value, status: &str) -> Value {
    let polling = async {
        loop {
            let polled = poll(server, json!({ "stream_id": stream })).await;
            if polled["status"] == status {
                return polled;
            }
        }
    };
    tokio::time::timeout(PATIENCE, polling).await.unwrap()
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

    let part = poll(
        &server,
        json!({ "stream_id": stream, "from_seq": 1, "limit": 1 }),
    )
    .await;
    assert_eq!(
        part["events"],
        json!([{ "type": "content", "text": "waiting" }])
    );
    assert_eq!([&part["from_seq"], &part["next_seq"]], [1, 2]);
    let rest = poll(&server, json!({ "stream_id": stream, "from_seq": 3 })).await;
    assert_eq!(rest["events"], json!([]));
    assert_eq!(rest["status"], "complete");
}

#[tokio::test]
async fn failures_and_unknown_streams_are_told() {
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

/// Who deletes a session ends what it does.
#[tokio::test]
async fn deleting_a_session_ends_its_chat() {
    let server = Server::new();
    server.session().await;
    let stream = begin(&server, "hang").await;
    let ids = loop {
        let polled = poll(&server, json!({ "stream_id": stream })).await;
        if let Some(text) = polled["events"][1]["text"].as_str() {
            break text.to_owned();
        }
    };
    let deleted = server
        .call("claudecode.delete", json!({ "name": "s" }))
        .await;
    assert_eq!(deleted["structuredContent"], json!({ "deleted": "s" }));
    for id in ids.split(' ') {
        gone(id).await;
    }
    until(&server, &stream, "failed").await;
}

/// A chat that waits for a permission says so, and anybody may give it.
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
