//! Legacy sessions over HTTP: their ids, their end, and their isolation from each other.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, HttpResponse, within};
use serde_json::json;

use crate::support::{
    LEGACY, call, code, initialize, listening, notification, request, session, text, with_method,
};

/// S003-35, C21, HTTPL-18, SEC-03: a session id has at least 256 bits, in visible ASCII.
#[tokio::test]
async fn ids_are_long_and_never_the_same() {
    let server = listening(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        let client = HttpClient::new(server.url(), Revision::V2025_11_25);
        let answer = client.post(&initialize(1, "2025-11-25")).send().await;
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        assert!(id.len() >= 43, "{id}");
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        ids.push(id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 50);
}

/// S003-34, HTTPL-20, HTTPL-21, TRANSLATION §12 case 25: every request in a deleted session gets
/// 404.
#[tokio::test]
async fn a_deleted_session_is_gone() {
    let server = listening(&[]).await;
    for revision in LEGACY {
        let client = session(server.url(), revision).await;
        let mut stream = client.get().send().await;
        let waiting = request(1, "tools/call", call("test_wait_for_cancel", json!({})));
        let running = client.post(&waiting).send();
        let deleting = async {
            let other = session(server.url(), revision).await;
            let answer = client.delete().send().await;
            assert_eq!((answer.status(), answer.text().await.as_str()), (204, ""));
            other
        };
        // The call sends no message before its session ends.
        let (answer, other) = tokio::join!(running, deleting);
        assert_no_result(answer).await;
        assert_eq!(stream.event().await, None);

        let late = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        let requests = [
            client.post(&request(2, "tools/list", json!({}))),
            client.post(&late),
            client.post(&notification("notifications/initialized")),
            client.get(),
            client.delete(),
        ];
        for request in requests {
            let answer = request.send().await;
            assert_eq!(answer.status(), 404);
            assert_eq!(code(&answer.message().await), -32600);
        }
        let answer = other.post(&request(3, "ping", json!({}))).send().await;
        assert_eq!(answer.message().await["result"], json!({}));
    }
}

/// HTTPL-15: a second GET closes the stream of the first. No message is sent on both.
#[tokio::test]
async fn a_second_get_takes_over() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    let mut first = client.get().send().await;
    let change = |id: i64| {
        request(
            id,
            "tools/call",
            call("test_trigger_tool_change", json!({})),
        )
    };
    client.post(&change(1)).send().await.message().await;
    assert_eq!(
        changed(&mut first).await,
        "notifications/tools/list_changed"
    );

    let mut second = client.get().send().await;
    assert_eq!(first.event().await, None);
    client.post(&change(2)).send().await.message().await;
    assert_eq!(
        changed(&mut second).await,
        "notifications/tools/list_changed"
    );
}

/// S003-33, HTTPL-13, HTTPL-14: the GET stream has only messages that belong to no request.
#[tokio::test]
async fn messages_of_a_request_are_not_sent_on_the_get_stream() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    let mut stream = client.get().send().await;
    let mut progress = call("test_tool_with_progress", json!({}));
    progress["_meta"] = json!({"progressToken": 1});
    let messages = client
        .post(&request(1, "tools/call", progress))
        .send()
        .await;
    let messages = messages.messages().await;
    assert_eq!(with_method(&messages, "notifications/progress").len(), 3);
    let change = request(2, "tools/call", call("test_trigger_tool_change", json!({})));
    let messages = client.post(&change).send().await.messages().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(
        changed(&mut stream).await,
        "notifications/tools/list_changed"
    );
}

/// Log levels and cancellations of one session do not affect another.
#[tokio::test]
async fn sessions_do_not_touch_one_another() {
    let server = listening(&[]).await;
    let (quiet, loud) = (
        session(server.url(), Revision::V2025_06_18).await,
        session(server.url(), Revision::V2025_11_25).await,
    );
    let set = |level: &str| request(1, "logging/setLevel", json!({"level": level}));
    quiet.post(&set("emergency")).send().await.message().await;
    loud.post(&set("debug")).send().await.message().await;
    let log = request(2, "tools/call", call("test_logging_tool", json!({})));
    for (client, expected) in [(&quiet, 1), (&loud, 8)] {
        let messages = client.post(&log).send().await.messages().await;
        assert_eq!(
            with_method(&messages, "notifications/message").len(),
            expected
        );
    }

    let mut waiting = call("test_wait_for_cancel", json!({}));
    waiting["_meta"] = json!({"progressToken": 1});
    let mut running = quiet.post(&request(3, "tools/call", waiting)).send().await;
    running.next_message().await.unwrap();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 3}});
    assert_eq!(loud.post(&cancel).send().await.status(), 202);
    assert_eq!(cancelled(&loud).await, "0");
    assert_eq!(quiet.post(&cancel).send().await.status(), 202);
    assert_no_result(running).await;
    within("the work to stop", async {
        while cancelled(&loud).await != "1" {}
    })
    .await;
}

/// HTTPL-11: a lost connection cancels nothing. Calls in flight continue.
#[tokio::test]
async fn a_lost_connection_does_not_cancel() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    let mut waiting = call("test_wait_for_cancel", json!({}));
    waiting["_meta"] = json!({"progressToken": 1});
    let mut running = client.post(&request(1, "tools/call", waiting)).send().await;
    running.next_message().await.unwrap();
    drop(running);
    for _ in 0..10 {
        assert_eq!(cancelled(&client).await, "0");
    }
    let answer = client.post(&request(1, "ping", json!({}))).send().await;
    assert_eq!(code(&answer.message().await), -32600);
}

/// S000-45, C08: over HTTP, a cancelled call that waits for a JSON response gets an error.
#[tokio::test]
async fn a_cancelled_call_that_waits_for_json_gets_an_error() {
    let server = listening(&[]).await;
    for revision in LEGACY {
        let client = session(server.url(), revision).await;
        let mut stream = client.get().send().await;
        let mut params = call("test_wait_for_cancel", json!({}));
        params["_meta"] = json!({"progressToken": 1});
        let waiting = request("c", "tools/call", params);
        let running = client
            .post(&waiting)
            .header("accept", "application/json")
            .send();
        let cancelling = async {
            // A client that accepts only JSON gets progress on the standalone stream.
            let report = stream.next_message().await.unwrap();
            assert_eq!(report["method"], "notifications/progress");
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": "c", "reason": "no longer wanted"}});
            assert_eq!(client.post(&cancel).send().await.status(), 202);
        };
        let (answer, ()) = tokio::join!(running, cancelling);
        assert_eq!(answer.status(), 200, "{revision}");
        let answer = answer.message().await;
        let (code, id) = (code(&answer), &answer["id"]);
        assert_eq!((code, id), (-32800, &json!("c")), "{revision}");
    }
}

async fn cancelled(client: &HttpClient) -> String {
    let count = request(
        "count",
        "tools/call",
        call("test_cancelled_count", json!({})),
    );
    let answer = client.post(&count).send().await.message().await;
    text(&answer["result"]).to_owned()
}

async fn changed(stream: &mut HttpResponse) -> String {
    let message = stream.next_message().await.unwrap_or_default();
    message["method"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that a cancelled call has no result.
async fn assert_no_result(answer: HttpResponse) {
    for message in answer.messages().await {
        assert!(message.get("result").is_none(), "{message}");
    }
}
