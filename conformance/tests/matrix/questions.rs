//! A client that answers questions, in either era.

use plexus_testkit::Client;
use serde_json::{Map, Value, json};

/// Calls a tool that asks one question, answers it, and returns the question and the result or error
/// of the call.
pub(crate) async fn answered(
    client: &mut Client,
    tool: &str,
    arguments: Value,
    answer: Value,
) -> (Option<Value>, Value) {
    let call = json!({"name": tool, "arguments": arguments});
    if client.is_stateless() {
        retried(client, call, answer).await
    } else {
        requested(client, call, answer).await
    }
}

async fn requested(client: &mut Client, call: Value, answer: Value) -> (Option<Value>, Value) {
    let id = client.begin("tools/call", call).await;
    let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == id;
    let is_question =
        |message: &Value| message.get("method").is_some() && message.get("id").is_some();
    let first = client
        .expect("a question or the answer", |message| {
            is_answer(message) || is_question(message)
        })
        .await;
    if is_answer(&first) {
        return (None, first);
    }
    client.answer(&first, answer).await;
    (Some(first), client.response(&id).await)
}

async fn retried(client: &mut Client, call: Value, answer: Value) -> (Option<Value>, Value) {
    let id = client.begin("tools/call", call.clone()).await;
    let first = client.response(&id).await;
    if first["result"]["resultType"] != "input_required" {
        return (None, first);
    }
    let questions = first["result"]["inputRequests"].as_object().unwrap();
    let answers: Map<_, _> = questions
        .keys()
        .map(|key| (key.clone(), answer.clone()))
        .collect();
    let question = questions.values().next().cloned();
    let mut retry = call;
    retry["inputResponses"] = answers.into();
    retry["requestState"] = first["result"]["requestState"].clone();
    let id = client.begin("tools/call", retry).await;
    (question, client.response(&id).await)
}
