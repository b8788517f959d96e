//! Tools of language models: what each API is sent, and how its calls are read.

use plexus_mcp_agents::model::{
    AnswerPart, ChatMessage, Image, MessagePart, ModelError, Models, Provider, Question, Speaker,
    ToolCall, ToolDefinition, ToolOutcome,
};
use plexus_mcp_wire::Raw;
use plexus_testkit::model::{Dialect, MODELS, ScriptedCall, ScriptedModel, Turn};
use serde_json::json;

/// A schema whose keys are not in alphabetical order, with a number that `f64` cannot hold.
const SCHEMA: &str = r#"{"type":"object", "properties":{"z":{"type":"string"},"a":{"maximum":12345678901234567890123}}}"#;

fn models(model: &ScriptedModel) -> Models {
    let urls = Dialect::ALL.map(|dialect| model.base_url(dialect));
    let [anthropic, openai] = urls;
    Models::from_environment(move |name| match name {
        "ANTHROPIC_BASE_URL" => Some(anthropic.clone().into()),
        "OPENAI_BASE_URL" => Some(openai.clone().into()),
        _ => None,
    })
}

fn provider(dialect: Dialect) -> Provider {
    match dialect {
        Dialect::Anthropic => Provider::Anthropic,
        Dialect::OpenAi => Provider::OpenAi,
    }
}

fn question(dialect: Dialect, messages: Vec<ChatMessage>) -> Question {
    Question {
        provider: provider(dialect),
        model: MODELS[0].to_owned(),
        base_url: None,
        system: Some("Be brief.".to_owned()),
        tools: vec![ToolDefinition {
            name: "mcp__files__read".to_owned(),
            description: "Reads a file".to_owned(),
            input_schema: Raw::from_static(SCHEMA),
        }],
        messages,
        max_tokens: None,
    }
}

async fn parts(models: &Models, question: &Question) -> Result<Vec<AnswerPart>, ModelError> {
    let mut answer = models.ask(question).await?;
    let mut parts = Vec::new();
    while let Some(part) = answer.next().await? {
        parts.push(part);
    }
    Ok(parts)
}

fn call(id: &str, input: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "mcp__files__read".to_owned(),
        input: input.to_owned(),
    }
}

/// Calls arrive complete, in order, with the input as the model wrote it, even if it is no JSON.
#[tokio::test]
async fn calls_of_tools_are_read_from_the_stream() {
    for dialect in Dialect::ALL {
        let inputs = [r#"{"z": "ü"}"#, "", "{\"z\":"];
        let scripted = inputs.iter().zip(["one", "two", "three"]);
        let scripted = scripted.map(|(input, id)| ScriptedCall {
            id: id.to_owned(),
            name: "mcp__files__read".to_owned(),
            input: (*input).to_owned(),
        });
        let turn = Turn::Calls("I look.".to_owned(), scripted.collect());
        let model = ScriptedModel::start([turn]).await;
        let hello = vec![ChatMessage::text(Speaker::User, "Hello")];
        let parts = parts(&models(&model), &question(dialect, hello))
            .await
            .unwrap();
        let expected = [
            AnswerPart::Text("I look.".to_owned()),
            AnswerPart::Call(call("one", inputs[0])),
            AnswerPart::Call(call("two", inputs[1])),
            AnswerPart::Call(call("three", inputs[2])),
        ];
        assert_eq!(parts, expected, "{dialect:?}");
    }
}

/// The schema of a tool is sent byte by byte, and calls and results in the form of each API.
#[tokio::test]
async fn tools_and_results_are_sent() {
    for dialect in Dialect::ALL {
        let model = ScriptedModel::start([Turn::says(&["Done."])]).await;
        let outcome = |id: &str, is_error| {
            MessagePart::ToolOutcome(ToolOutcome {
                id: id.to_owned(),
                text: "the text".to_owned(),
                images: vec![Image {
                    mime_type: "image/png".to_owned(),
                    data: "AAAA".to_owned(),
                }],
                is_error,
            })
        };
        let messages = vec![
            ChatMessage::text(Speaker::User, "Hello"),
            ChatMessage {
                speaker: Speaker::Assistant,
                parts: vec![
                    MessagePart::Text("I look.".to_owned()),
                    MessagePart::ToolCall(call("one", r#"{"z":"x"}"#)),
                    MessagePart::ToolCall(call("two", "no JSON")),
                ],
            },
            ChatMessage {
                speaker: Speaker::User,
                parts: vec![outcome("one", false), outcome("two", true)],
            },
        ];
        parts(&models(&model), &question(dialect, messages))
            .await
            .unwrap();
        let sent = &model.questions()[0];
        assert!(sent.text.contains(SCHEMA), "{}", sent.text);
        let body = &sent.body;
        let image = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
        match dialect {
            Dialect::Anthropic => {
                assert_eq!(body["system"], "Be brief.");
                let result = |id: &str| {
                    json!({"type": "tool_result", "tool_use_id": id, "content": [
                        {"type": "text", "text": "the text"}, {"type": "image", "source": image},
                    ]})
                };
                let mut failed = result("two");
                failed["is_error"] = true.into();
                let name = "mcp__files__read";
                let expected = json!([
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": [
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "one", "name": name, "input": {"z": "x"}},
                        {"type": "tool_use", "id": "two", "name": name, "input": {}},
                    ]},
                    {"role": "user", "content": [result("one"), failed]},
                ]);
                assert_eq!(body["messages"], expected);
            }
            Dialect::OpenAi => {
                let called = |id: &str, input: &str| {
                    let function = json!({"name": "mcp__files__read", "arguments": input});
                    json!({"id": id, "type": "function", "function": function})
                };
                let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
                let told = json!({"type": "text", "text": "The pictures in the results above:"});
                let expected = json!([
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": "I look.",
                     "tool_calls": [called("one", r#"{"z":"x"}"#), called("two", "{}")]},
                    {"role": "tool", "tool_call_id": "one", "content": "the text"},
                    {"role": "tool", "tool_call_id": "two", "content": "Error: the text"},
                    {"role": "user", "content": [told, url, url]},
                ]);
                assert_eq!(body["messages"], expected);
                assert_eq!(body["tools"][0]["type"], "function");
            }
        }
    }
}
