//! The lifecycle of a legacy connection: the handshake, requests that are refused before it
//! (S002-06 to S002-12, C05 to C07), and the negotiated revision (C03).

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, HttpClient, ListeningServer};
use serde_json::{Value, json};

use crate::support::{
    ANY_PORT, LEGACY, SERVER, code, initialize, listening, notification, request, session, stdio,
    stdio_session,
};

/// S003-19, S003-52, C05, S002-10, S002-38.
#[tokio::test]
async fn a_pipe_serves_nothing_but_ping_before_initialize() {
    let mut pipe = stdio();
    for method in [
        "tools/list",
        "tools/call",
        "resources/list",
        "unknown/method",
    ] {
        pipe.send(&request(1, method, json!({}))).await;
        let answer = pipe.receive().await;
        assert_eq!(code(&answer), -32600, "{method}");
        assert_eq!(answer["error"]["message"], "Server not initialized");
        let data = json!({"state": "created", "reason": "not_initialized"});
        assert_eq!(answer["error"]["data"], data);
    }
    pipe.send(&request(2, "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["result"], json!({}));
    pipe.send(&initialize(3, "2025-06-18")).await;
    assert_eq!(
        pipe.receive().await["result"]["protocolVersion"],
        "2025-06-18"
    );
}

/// S000-18, C06, S002-08: messages on a pipe are ordered, so requests before `initialized` are
/// refused, except `ping`.
#[tokio::test]
async fn a_pipe_waits_for_initialized() {
    for revision in LEGACY {
        let mut pipe = stdio();
        pipe.send(&initialize(1, revision.as_str())).await;
        pipe.receive().await;
        pipe.send(&request(2, "tools/list", json!({}))).await;
        let answer = pipe.receive().await;
        assert_eq!(code(&answer), -32600);
        assert_eq!(answer["error"]["message"], "Server initializing");
        assert_eq!(answer["error"]["data"]["state"], "initializing");
        pipe.send(&request(3, "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["result"], json!({}));
        pipe.send(&notification("notifications/initialized")).await;
        pipe.send(&request(4, "tools/list", json!({}))).await;
        assert!(pipe.receive().await["result"]["tools"].is_array());
    }
}

/// C06: `initialized`, the spelling of an old validator, is accepted. S002-19: a list request needs
/// no params.
#[tokio::test]
async fn initialized_has_an_alias_and_lists_need_no_params() {
    let mut pipe = stdio();
    pipe.send(&initialize(1, "2024-11-05")).await;
    pipe.receive().await;
    pipe.send(&notification("initialized")).await;
    pipe.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        .await;
    assert!(pipe.receive().await["result"]["tools"].is_array());
}

/// C06: POSTs can arrive in any order, so requests need not wait for `initialized`.
#[tokio::test]
async fn http_does_not_wait_for_initialized() {
    let server = listening(&[]).await;
    for revision in LEGACY {
        let client = HttpClient::new(server.url(), revision);
        let answer = client.post(&initialize(1, revision.as_str())).send().await;
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        answer.message().await;
        let client = client.with_header("mcp-session-id", &id);
        let answer = client
            .post(&request(2, "tools/list", json!({})))
            .send()
            .await;
        assert!(answer.message().await["result"]["tools"].is_array());
    }
}

/// C07, S002-11.
#[tokio::test]
async fn initialize_is_refused_the_second_time() {
    let mut pipe = stdio_session(Revision::V2025_06_18).await;
    pipe.send(&initialize(1, "2025-11-25")).await;
    let answer = pipe.receive().await;
    assert_eq!(code(&answer), -32600);
    assert_eq!(answer["error"]["data"]["state"], "operating");
    pipe.send(&request(2, "tools/list", json!({}))).await;
    assert!(pipe.receive().await["result"]["tools"].is_array());

    let server = ListeningServer::start(SERVER, &["--sse", ANY_PORT]).await;
    let mut client = Client::sse(server.url(), Revision::V2024_11_05, json!({})).await;
    client.open().await;
    let mut again = initialize(0, "2024-11-05");
    let error = client.error("initialize", again["params"].take()).await;
    assert_eq!(error["code"], -32600);
    assert!(client.result("tools/list", json!({})).await["tools"].is_array());
}

/// C07 over HTTP: `initialize` in a session is refused, and the session continues.
#[tokio::test]
async fn initialize_in_a_session_is_refused() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    let answer = client.post(&initialize(1, "2025-11-25")).send().await;
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(code(&answer.message().await), -32600);
    let answer = client
        .post(&request(2, "tools/list", json!({})))
        .send()
        .await;
    assert!(answer.message().await["result"]["tools"].is_array());
}

/// S000-16, S003-09, C03, LIFE-07.
#[tokio::test]
async fn the_version_asked_for_is_spoken_or_the_newest_is_offered() {
    let server = listening(&[]).await;
    let mut offers: Vec<_> = LEGACY.iter().map(|r| (r.as_str(), r.as_str())).collect();
    offers.extend([
        ("2026-07-28", "2025-11-25"),
        ("2024-10-07", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("latest", "2025-11-25"),
    ]);
    for (asked, spoken) in offers {
        let mut pipe = stdio();
        pipe.send(&initialize(1, asked)).await;
        assert_eq!(pipe.receive().await["result"]["protocolVersion"], spoken);
        let client = HttpClient::new(server.url(), Revision::V2025_11_25);
        let answer = client.post(&initialize(1, asked)).send().await;
        assert_eq!(answer.message().await["result"]["protocolVersion"], spoken);
    }
}

/// C03: an `initialize` without a valid version is refused, and changes nothing.
#[tokio::test]
async fn a_malformed_initialize_is_refused_and_may_be_repeated() {
    let server = listening(&[]).await;
    let mut pipe = stdio();
    for params in [
        json!({}),
        json!({"capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}),
        json!({"protocolVersion": 20_250_618, "capabilities": {}}),
        json!({"protocolVersion": Value::Null, "capabilities": {}}),
        json!({"protocolVersion": "2025-06-18", "capabilities": "many"}),
    ] {
        let message = request(1, "initialize", params);
        pipe.send(&message).await;
        assert_eq!(code(&pipe.receive().await), -32602, "{message}");
        let client = HttpClient::new(server.url(), Revision::V2025_03_26);
        let answer = client.post(&message).send().await;
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(code(&answer.message().await), -32602, "{message}");
    }
    pipe.send(&initialize(2, "2025-06-18")).await;
    assert_eq!(
        pipe.receive().await["result"]["protocolVersion"],
        "2025-06-18"
    );
}

/// S002-13, BASE-07, S002-25: a notification gets no response, even if it is invalid.
#[tokio::test]
async fn notifications_are_never_answered() {
    let mut pipe = stdio_session(Revision::V2025_11_25).await;
    for message in [
        notification("notifications/unknown"),
        notification("notifications/initialized"),
        notification("notifications/roots/list_changed"),
        notification("tools/list"),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "id": "nobody", "result": {}}),
        json!({"jsonrpc": "2.0", "id": "nobody", "error": {"code": 1, "message": "m"}}),
    ] {
        pipe.send(&message).await;
    }
    pipe.send(&request("last", "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], "last");
    let (rest, exit) = pipe.finish().await;
    assert_eq!((rest, exit.code), (vec![], Some(0)));
}
