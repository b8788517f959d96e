//! Questions to a legacy client, and its answers: valid, malformed, refused, or with a wrong id.

use plexus_mcp_protocol::Revision;
use plexus_testkit::StdioClient;
use serde_json::{Value, json};

use crate::support::{call, code, notification, request, stdio, text};

/// A session of a client that declares every capability for questions.
async fn askable(revision: Revision) -> StdioClient {
    let mut pipe = stdio();
    let params = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": crate::support::capabilities(revision),
        "clientInfo": {"name": "scripted", "version": "1.0.0"},
    });
    pipe.send(&request(0, "initialize", params)).await;
    pipe.receive().await;
    pipe.send(&notification("notifications/initialized")).await;
    pipe
}

/// Calls a tool, and returns the question that the server sends.
async fn ask(pipe: &mut StdioClient, id: i64, call: Value) -> Value {
    pipe.send(&request(id, "tools/call", call)).await;
    let question = pipe.receive().await;
    assert!(question.get("method").is_some(), "{question}");
    question
}

fn elicitation() -> Value {
    call("test_elicitation", json!({"message": "Who?"}))
}

fn sampling() -> Value {
    call("test_sampling", json!({"prompt": "Why?"}))
}

/// C33, C34: an answer is matched by the exact id of its question; other responses are dropped.
#[tokio::test]
async fn only_the_right_id_answers() {
    let mut pipe = askable(Revision::V2025_06_18).await;
    let question = ask(&mut pipe, 1, elicitation()).await;
    let answer = json!({"action": "decline"});
    let id = &question["id"];
    let other_type = match id {
        Value::String(id) => json!(id.parse::<i64>().unwrap_or(-1)),
        other => json!(other.to_string()),
    };
    for wrong in [other_type, json!("nobody"), json!(999)] {
        let wrong = json!({"jsonrpc": "2.0", "id": wrong, "result": {"action": "accept"}});
        pipe.send(&wrong).await;
    }
    pipe.send(&request(2, "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 2);
    let right = json!({"jsonrpc": "2.0", "id": id, "result": answer});
    pipe.send(&right).await;
    let result = pipe.receive().await;
    assert!(
        text(&result["result"]).contains("action=decline"),
        "{result}"
    );
    pipe.send(&right).await;
    pipe.send(&request(3, "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 3);
}

/// SAMP-09, ROOT-04, ELIC-19: a refused question fails its call; the session continues.
#[tokio::test]
async fn a_refusal_fails_the_call_only() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let mut pipe = askable(revision).await;
        for (id, tool) in [(1, sampling()), (2, call("test_roots", json!({})))] {
            let question = ask(&mut pipe, id, tool).await;
            let error = json!({"code": -1, "message": "User rejected sampling request"});
            let refusal = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
            pipe.send(&refusal).await;
            let answer = pipe.receive().await;
            assert_eq!(answer["id"], id);
            let failed = answer["result"]["isError"] == true || answer.get("error").is_some();
            assert!(failed, "{answer}");
        }
        pipe.send(&request(3, "ping", json!({}))).await;
        assert_eq!(pipe.receive().await["result"], json!({}));
    }
}

/// ELIC-15, SAMP-14: a malformed answer fails its call; the session continues.
#[tokio::test]
async fn a_malformed_answer_fails_the_call_only() {
    let mut pipe = askable(Revision::V2025_11_25).await;
    let mut id = 0;
    for (call, results) in [
        (
            elicitation(),
            vec![
                json!({}),
                json!({"action": "perhaps"}),
                json!({"action": "accept", "content": 5}),
            ],
        ),
        (
            sampling(),
            vec![
                json!({}),
                json!({"role": "assistant", "model": "m"}),
                json!({"content": "x"}),
            ],
        ),
        (
            call("test_roots", json!({})),
            vec![
                json!({}),
                json!({"roots": "file:///"}),
                json!({"roots": [1]}),
            ],
        ),
    ] {
        for result in results {
            id += 1;
            let question = ask(&mut pipe, id, call.clone()).await;
            pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
                .await;
            let answer = pipe.receive().await;
            assert_eq!(answer["id"], id);
            let failed = answer["result"]["isError"] == true || answer.get("error").is_some();
            assert!(failed, "{result}: {answer}");
        }
    }
}

/// TRANSLATION §6.4: a cancelled call cancels its question.
#[tokio::test]
async fn a_cancelled_call_withdraws_its_question() {
    let mut pipe = askable(Revision::V2025_11_25).await;
    let question = ask(&mut pipe, 1, elicitation()).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1}});
    pipe.send(&cancel).await;
    let withdrawn = pipe.receive().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let late = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    pipe.send(&late).await;
    pipe.send(&request(2, "ping", json!({}))).await;
    assert_eq!(pipe.receive().await["id"], 2);
    assert_eq!(pipe.finish().await.0, [] as [Value; 0]);
}

/// LIFE-09: a client is asked no question whose capability it did not declare.
#[tokio::test]
async fn undeclared_capabilities_are_not_used() {
    let mut pipe = crate::support::stdio_session(Revision::V2025_11_25).await;
    for (id, tool) in [
        (1, elicitation()),
        (2, sampling()),
        (3, call("test_roots", json!({}))),
    ] {
        pipe.send(&request(id, "tools/call", tool)).await;
        let answer = pipe.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (-32021, &json!(id)));
        assert!(answer["error"]["data"]["requiredCapabilities"].is_object());
    }
}

/// ELIC-02, ELIC-03: the capability `elicitation: {}` allows forms, but not URLs.
#[tokio::test]
async fn an_undeclared_mode_is_not_used() {
    let mut pipe = stdio();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "scripted", "version": "1.0.0"},
    });
    pipe.send(&request(0, "initialize", params)).await;
    pipe.receive().await;
    pipe.send(&notification("notifications/initialized")).await;
    let question = ask(&mut pipe, 1, elicitation()).await;
    assert_eq!(question["method"], "elicitation/create");
    let visit = call("test_url_elicitation", json!({}));
    pipe.send(&request(2, "tools/call", visit)).await;
    let answer = pipe.receive().await;
    assert_eq!((code(&answer), &answer["id"]), (-32021, &json!(2)));
}
