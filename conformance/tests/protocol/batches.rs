//! Batches: part of 2025-03-26, accepted in 2024-11-05, refused in all other revisions
//! (C04, BASE-09 to BASE-11, S002-03, S002-17).

use plexus_mcp_protocol::Revision;
use serde_json::{Value, json};

use crate::support::{
    call, code, initialize, listening, notification, request, session, stdio, stdio_session, text,
};

const WITH_BATCHES: [Revision; 2] = [Revision::V2024_11_05, Revision::V2025_03_26];
const WITHOUT: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

/// Batches, each with the ids of the expected responses.
fn batches() -> [(Value, Vec<Value>); 3] {
    let slow = call("test_slow", json!({"ms": 20}));
    [
        (json!([request(1, "ping", json!({}))]), vec![json!(1)]),
        (
            json!([
                request("slow", "tools/call", slow),
                notification("notifications/unknown"),
                request(2, "tools/list", json!({})),
                request("3", "unknown/method", json!({})),
            ]),
            vec![json!("3"), json!("slow"), json!(2)],
        ),
        (
            json!([1, request(4, "ping", json!({})), {"id": 5}, "x"]),
            vec![Value::Null, Value::Null, json!(4), json!(5)],
        ),
    ]
}

/// A batch of notifications and responses only, which gets no response.
fn silent() -> Value {
    json!([
        notification("notifications/unknown"),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        notification("notifications/roots/list_changed"),
    ])
}

#[tokio::test]
async fn a_pipe_answers_a_batch_with_an_array() {
    for revision in WITH_BATCHES {
        let mut pipe = stdio_session(revision).await;
        for (batch, ids) in batches() {
            pipe.send(&batch).await;
            assert_eq!(sorted_ids(&pipe.receive().await), ids);
        }
        pipe.send(&silent()).await;
        pipe.send(&request("next", "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["id"], "next");
        assert_eq!(pipe.finish().await.0, [] as [Value; 0]);
    }
}

#[tokio::test]
async fn http_answers_a_batch_with_an_array() {
    let server = listening(&[]).await;
    for revision in WITH_BATCHES {
        let client = session(server.url(), revision).await;
        for (batch, ids) in batches() {
            let answer = client.post(&batch).send().await;
            assert_eq!(answer.status(), 200);
            let messages = answer.messages().await;
            let [answers] = &messages[..] else {
                panic!("one array was expected: {messages:?}")
            };
            assert_eq!(sorted_ids(answers), ids);
        }
        let answer = client.post(&silent()).send().await;
        assert_eq!((answer.status(), answer.text().await.as_str()), (202, ""));
    }
}

/// Progress of a call in a batch is sent before the array of answers.
#[tokio::test]
async fn calls_in_a_batch_report_progress() {
    let mut calling = call("test_tool_with_progress", json!({}));
    calling["_meta"] = json!({"progressToken": "t"});
    let batch = json!([request(1, "tools/call", calling)]);
    let mut pipe = stdio_session(Revision::V2025_03_26).await;
    pipe.send(&batch).await;
    for _ in 0..3 {
        assert_eq!(pipe.receive().await["method"], "notifications/progress");
    }
    let answers = pipe.receive().await;
    assert_eq!(
        text(&answers[0]["result"]),
        "Tool with progress executed successfully"
    );

    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_03_26).await;
    let messages = client.post(&batch).send().await.messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(sorted_ids(&messages[3]), [json!(1)]);
}

/// BASE-10: `initialize` in a batch is refused.
#[tokio::test]
async fn initialize_does_not_work_in_a_batch() {
    let mut pipe = stdio();
    let batch = json!([initialize(1, "2025-03-26"), request(2, "ping", json!({}))]);
    pipe.send(&batch).await;
    let answers = pipe.receive().await;
    let greeting = answers
        .as_array()
        .unwrap()
        .iter()
        .find(|answer| answer["id"] == 1);
    assert_eq!(code(greeting.unwrap()), -32600);
    pipe.send(&initialize(3, "2025-03-26")).await;
    assert_eq!(
        pipe.receive().await["result"]["protocolVersion"],
        "2025-03-26"
    );

    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_03_26).await;
    let answers = client.post(&batch).send().await.message().await;
    let greeting = answers
        .as_array()
        .unwrap()
        .iter()
        .find(|answer| answer["id"] == 1);
    assert_eq!(code(greeting.unwrap()), -32600);
}

/// Before `initialize`, each request of a batch gets its own error.
#[tokio::test]
async fn a_batch_before_initialize_is_refused_item_by_item() {
    let mut pipe = stdio();
    let batch = json!([
        request(1, "tools/list", json!({})),
        notification("notifications/unknown"),
        request(2, "prompts/list", json!({})),
    ]);
    pipe.send(&batch).await;
    let answers = pipe.receive().await;
    assert_eq!(sorted_ids(&answers), [json!(1), json!(2)]);
    assert_eq!((code(&answers[0]), code(&answers[1])), (-32600, -32600));
}

#[tokio::test]
async fn empty_and_endless_batches_are_refused_whole() {
    let server = listening(&[]).await;
    let pings = |count: u32| -> Value {
        (0..count)
            .map(|id| request(id, "ping", json!({})))
            .collect()
    };
    for revision in WITH_BATCHES {
        let mut pipe = stdio_session(revision).await;
        let client = session(server.url(), revision).await;
        for refused in [json!([]), pings(101)] {
            pipe.send(&refused).await;
            let answer = pipe.receive().await;
            assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null));
            let answer = client.post(&refused).send().await;
            assert_eq!(answer.status(), 400);
            assert_eq!(code(&answer.message().await), -32600);
        }
        pipe.send(&pings(100)).await;
        assert_eq!(pipe.receive().await.as_array().unwrap().len(), 100);
    }
}

/// BASE-11: the whole batch gets one error.
#[tokio::test]
async fn later_revisions_refuse_batches_whole() {
    let server = listening(&[]).await;
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]);
    for revision in WITHOUT {
        let mut pipe = stdio_session(revision).await;
        for batch in [&batch, &silent(), &json!([])] {
            pipe.send(batch).await;
            assert_eq!(code(&pipe.receive().await), -32600, "{revision} {batch}");
            let client = session(server.url(), revision).await;
            let answer = client.post(batch).send().await;
            assert_eq!(answer.status(), 400, "{revision} {batch}");
            assert_eq!(code(&answer.message().await), -32600);
        }
        pipe.send(&request(3, "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["result"], json!({}));
    }
}

/// The ids of the responses, sorted, since a batch may be answered in any order: `null` first, then
/// strings, then numbers.
fn sorted_ids(answers: &Value) -> Vec<Value> {
    let answers = answers.as_array();
    let answers = answers.unwrap_or_else(|| panic!("no array: {answers:?}"));
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    ids.sort_by_key(|id| (!id.is_null(), !id.is_string(), id.to_string()));
    ids
}
