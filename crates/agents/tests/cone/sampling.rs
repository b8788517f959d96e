//! Conversations with the client's own model.

use plexus_mcp_agents::model::Models;
use plexus_mcp_core::{AskError, Event, Question, Raw};
use plexus_mcp_wire::RpcError;
use plexus_testkit::model::{ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::support::{Client, models, said};

/// A client that supports sampling.
fn sampling(models: Models) -> Client {
    Client::with(models, &json!({ "sampling": {} }))
}

/// Chats, and answers the sampling request with `answer`; returns the request and the result.
async fn chat(
    client: &Client,
    prompt: &str,
    answer: Result<Value, AskError>,
) -> (Option<Value>, Value) {
    let (call, mut events) = client.begin_chat("helper", prompt);
    let mut answer = Some(answer);
    let mut asked = None;
    let answering = async {
        while let Some(event) = events.recv().await {
            if let Event::Ask(ask) = event {
                if let Question::Sample(params) = &ask.question {
                    asked = Some(params.decode().unwrap());
                }
                let answer = answer.take().unwrap();
                ask.answer(answer.map(|answer| Raw::encode(&answer).unwrap()));
            }
        }
    };
    let (result, ()) = tokio::join!(call, answering);
    (asked, result.unwrap().decode().unwrap())
}

fn sampling_result(text: &str) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": "clients-own",
        "stopReason": "endTurn",
    })
}

/// A cone with the model `sampling` uses the client's model, and stores the answer.
#[tokio::test]
async fn the_clients_model_answers() {
    let client = sampling(Models::none());
    let new = json!({
        "name": "helper",
        "model_id": "sampling/fast",
        "system_prompt": "Be brief.",
        "max_tokens": 50,
    });
    client.done("cone.create", new).await;
    let (asked, result) = chat(&client, "Hello?", Ok(sampling_result("Hi."))).await;
    let asked = asked.unwrap();
    assert_eq!(asked["systemPrompt"], "Be brief.");
    assert_eq!(asked["maxTokens"], 50);
    assert_eq!(asked["modelPreferences"]["hints"][0]["name"], "fast");
    assert_eq!(asked["messages"][0]["content"]["text"], "Hello?");
    assert_eq!(result["content"][0]["text"], "Hi.");
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    assert_eq!(result["structuredContent"]["model"], "clients-own");
    let (asked, _) = chat(&client, "And?", Ok(sampling_result("Well."))).await;
    assert_eq!(asked.unwrap()["messages"].as_array().unwrap().len(), 3);
    assert_eq!(client.memory("helper").await.len(), 4);
}

/// Without a key for the provider, the client's model is used.
#[tokio::test]
async fn without_a_key_the_client_is_asked() {
    let client = sampling(Models::none());
    client.create("helper", "claude-x").await;
    let (asked, result) = chat(&client, "Hello?", Ok(sampling_result("Hi."))).await;
    let hints = asked.unwrap()["modelPreferences"]["hints"].clone();
    assert_eq!(hints, json!([{ "name": "claude-x" }]));
    assert_eq!(result["content"][0]["text"], "Hi.");
    assert_eq!(
        client.memory("helper").await,
        said(&[("user", "Hello?"), ("assistant", "Hi.")])
    );
}

#[tokio::test]
async fn with_a_key_the_provider_is_asked() {
    let model = ScriptedModel::start([Turn::says(&["Provided."])]).await;
    let client = sampling(models(&model));
    client.create("helper", "claude-x").await;
    let (asked, result) = chat(&client, "Hello?", Ok(sampling_result("Hi."))).await;
    assert_eq!(asked, None);
    assert_eq!(result["content"][0]["text"], "Provided.");
}

/// Without a key and without sampling, the call fails and says what to do; nothing is stored.
#[tokio::test]
async fn without_key_and_sampling_the_chat_fails() {
    let client = Client::with(Models::none(), &json!({}));
    client.create("helper", "claude-x").await;
    let text = client.chat_failed("helper", "Hello?").await;
    assert!(text.contains("set ANTHROPIC_API_KEY"), "{text}");
    client.create("own", "sampling").await;
    let text = client.chat_failed("own", "Hello?").await;
    assert!(text.contains("offers no sampling"), "{text}");
    assert!(client.memory("helper").await.is_empty());
}

/// If the client refuses or sends an unusable answer, the conversation is unchanged.
#[tokio::test]
async fn a_client_may_refuse() {
    let client = sampling(Models::none());
    client.create("helper", "sampling").await;
    let before = client.tree("helper").await;
    let refused = AskError::Refused(RpcError {
        code: -1,
        message: "User rejected sampling request".into(),
        data: None,
    });
    for (answer, expected) in [
        (Err(refused), "User rejected sampling request"),
        (Ok(json!({ "nonsense": true })), "malformed"),
        (Ok(sampling_result(" \n")), "empty answer"),
    ] {
        let (_, result) = chat(&client, "Hello?", answer).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"].to_string().contains(expected), "{result}");
    }
    assert_eq!(client.tree("helper").await, before);
}
