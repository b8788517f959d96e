//! A call, with fixed answers to the questions that are asked during it.

use plexus_testkit::Client;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// How a call ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Called {
    /// The tool's text.
    Text(String),
    /// The text of a result with `isError`.
    ToolError(String),
    /// Why there is no result.
    Fault(String),
}

/// The maximum number of messages that are handled during a call. No tool asks as many questions.
const MOST_QUESTIONS: usize = 10;

/// Calls a tool, and answers its questions as the client's revision requires.
pub(crate) async fn call(client: &mut Client, mut params: Value) -> Called {
    let mut id = client.begin("tools/call", params.clone()).await;
    for _ in 0..MOST_QUESTIONS {
        let message = client
            .expect("the answer or a question", |message| {
                is_request(message) || message["id"] == id
            })
            .await;
        if is_request(&message) {
            client.answer(&message, answer(&message)).await;
        } else if message["result"]["resultType"] == "input_required" {
            params["requestState"] = message["result"]["requestState"].clone();
            params["inputResponses"] = answers(&message["result"]["inputRequests"]);
            id = client.begin("tools/call", params.clone()).await;
        } else {
            return ended(&message);
        }
    }
    Called::Fault(format!("more than {MOST_QUESTIONS} questions"))
}

/// Whether `message` is a request of the server.
fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

fn answers(questions: &Value) -> Value {
    let questions = questions.as_object().into_iter().flatten();
    let answers: Map<_, _> = questions
        .map(|(key, question)| (key.clone(), answer(question)))
        .collect();
    Value::Object(answers)
}

fn answer(question: &Value) -> Value {
    match question["method"].as_str() {
        Some("sampling/createMessage") => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "the visitor's model says hello" },
            "model": "visitor",
        }),
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///visited/root" }] }),
        Some("elicitation/create") => json!({ "action": "decline" }),
        _ => json!({}),
    }
}

fn ended(answer: &Value) -> Called {
    if let Some(error) = answer.get("error") {
        return Called::Fault(error["message"].as_str().unwrap_or_default().to_owned());
    }
    let result = &answer["result"];
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let text = texts.join("\n");
    if result["isError"] == true {
        Called::ToolError(text)
    } else {
        Called::Text(text)
    }
}
