//! Request ids are returned unchanged and compared exactly (C33, C34, S002-14, S002-15, BASE-02,
//! BASE-05).

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, HttpClient, StdioClient, Transport, within};
use serde_json::{Value, json};

use crate::support::{
    call, code, connect, listening, request, session, stdio, stdio_session, text,
};

/// Valid ids, as JSON text.
const GOOD: [&str; 11] = [
    "0",
    "1",
    "-7",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "123456789012345678901234567890",
    r#""""#,
    r#""1""#,
    r#""a b\n\"\\""#,
    r#""é😀""#,
];

/// Values that are not ids: JSON-RPC has strings and numbers, MCP integers only.
const BAD: [&str; 5] = ["null", "true", "{}", "[1]", "1.5"];

#[tokio::test]
async fn a_pipe_echoes_ids_exactly() {
    let mut pipe = stdio_session(Revision::V2025_06_18).await;
    for id in GOOD {
        pipe.send_line(ping(id)).await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(pipe.receive_line().await, expected);
        pipe.send_line(list_stateless(id)).await;
        let line = pipe.receive_line().await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#);
        assert!(line.starts_with(&expected), "{line}");
    }
}

#[tokio::test]
async fn http_echoes_ids_exactly() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    for id in GOOD {
        let answer = client.post_bytes(ping(id)).send().await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(answer.text().await, expected);
    }
    // The same string may be spelled in another way.
    let answer = client
        .post_bytes(ping(r#""\u00e9\ud83d\ude00""#))
        .send()
        .await;
    assert_eq!(answer.message().await["id"], "é😀");
}

/// A value that is not an id is not echoed, and the connection continues.
#[tokio::test]
async fn invalid_ids_are_refused_and_not_echoed() {
    let server = listening(&[]).await;
    let mut pipe = stdio_session(Revision::V2025_06_18).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    for id in BAD {
        pipe.send_line(ping(id)).await;
        let answer = pipe.receive().await;
        assert_eq!(
            (code(&answer), &answer["id"]),
            (-32600, &Value::Null),
            "{id}"
        );
        let answer = client.post_bytes(ping(id)).send().await;
        assert_eq!(answer.status(), 400, "{id}");
        let answer = answer.message().await;
        assert_eq!(
            (code(&answer), &answer["id"]),
            (-32600, &Value::Null),
            "{id}"
        );
    }
    pipe.send_line(ping("1")).await;
    assert_eq!(pipe.receive().await["result"], json!({}));
}

/// C33: from 2025-11-25 on, the error for a request with an invalid id has no id.
#[tokio::test]
async fn an_unreadable_id_is_left_out_where_the_revision_lets_it() {
    let mut pipe = stdio_session(Revision::V2025_11_25).await;
    pipe.send_line(ping("null")).await;
    let answer = pipe.receive().await;
    assert_eq!((code(&answer), answer.get("id")), (-32600, None));
    let server = listening(&[]).await;
    let client = HttpClient::new(server.url(), Revision::V2026_07_28);
    let post = client.post_bytes(ping("null"));
    let answer = post
        .header("mcp-protocol-version", "2026-07-28")
        .send()
        .await;
    assert_eq!(answer.status(), 400);
    let answer = answer.message().await;
    assert_eq!((code(&answer), answer.get("id")), (-32600, None));
}

/// C34: `3` is not `"3"`.
#[tokio::test]
async fn a_cancellation_with_an_id_of_another_type_is_ignored() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let capabilities = json!({});
        let (mut client, _) = connect(Transport::Stdio, revision, capabilities).await;
        client.open().await;
        let mut waiting = call("test_wait_for_cancel", json!({}));
        waiting["_meta"] = json!({"progressToken": 1});
        client.begin_as(&json!(30), "tools/call", waiting).await;
        client.expect_method("notifications/progress").await;
        for id in [json!("30"), json!(31), Value::Null, json!([30])] {
            let params = json!({"requestId": id});
            client.notify("notifications/cancelled", Some(params)).await;
        }
        assert_eq!(cancelled(&mut client).await, "0");
        client.cancel(&json!(30)).await;
        within("the work to stop", async {
            while cancelled(&mut client).await != "1" {}
        })
        .await;
    }
}

/// BASE-03, BASE-04: a request with the id of a request in flight is refused.
#[tokio::test]
async fn an_id_in_use_is_refused() {
    let mut pipe = stdio_session(Revision::V2025_06_18).await;
    let slow = request("same", "tools/call", call("test_slow", json!({"ms": 200})));
    pipe.send(&slow).await;
    pipe.send(&slow).await;
    assert_in_use(&mut pipe).await;

    let mut pipe = stdio();
    let slow =
        crate::support::stateless("same", "tools/call", call("test_slow", json!({"ms": 200})));
    pipe.send(&slow).await;
    pipe.send(&slow).await;
    assert_in_use(&mut pipe).await;
}

async fn assert_in_use(pipe: &mut StdioClient) {
    let refused = pipe.receive().await;
    assert_eq!((code(&refused), &refused["id"]), (-32600, &json!("same")));
    assert_eq!(text(&pipe.receive().await["result"]), "Slept for 200 ms");
}

async fn cancelled(client: &mut Client) -> String {
    let result = client.call("test_cancelled_count", json!({})).await;
    text(&result).to_owned()
}

fn ping(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
}

fn list_stateless(id: &str) -> String {
    let meta = crate::support::stateless(0, "", json!({}))["params"].take();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"prompts/list","params":{meta}}}"#)
}
