//! The chat completions API of OpenAI and of compatible servers.

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Serialize};

use super::answer::{Collected, Step};
use super::endpoint::ModelEndpoint;
use super::question::{ChatMessage, MessagePart, Question, Speaker, ToolCall, ToolOutcome};

/// The path of the endpoint for chat completions.
pub(super) const PATH: &str = "/chat/completions";

/// The data of the final event of a stream.
const DONE: &[u8] = b"[DONE]";

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OpenAiTool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    // OpenAI renamed this member, and its newer models refuse the old name. Compatible servers may
    // know only the old name.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct OpenAiTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Raw,
}

#[derive(Serialize, Default)]
struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<MessageContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(String),
    Parts(Vec<SentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: SentFunction<'a>,
}

#[derive(Serialize)]
struct SentFunction<'a> {
    name: &'a str,
    arguments: String,
}

pub(super) fn body<'a>(question: &'a Question, endpoint: &ModelEndpoint) -> Body<'a> {
    let system = question.system.iter().map(|text| Message {
        role: "system",
        content: Some(MessageContent::Text(text.clone())),
        ..Message::default()
    });
    let said = question.messages.iter().flat_map(messages);
    let is_openai = endpoint.base.url().starts_with("https://api.openai.com/");
    Body {
        model: &question.model,
        messages: system.chain(said).collect(),
        tools: question.tools.iter().map(tool).collect(),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        max_completion_tokens: question.max_tokens.filter(|_| is_openai),
        max_tokens: question.max_tokens.filter(|_| !is_openai),
    }
}

fn tool(definition: &super::question::ToolDefinition) -> OpenAiTool<'_> {
    OpenAiTool {
        kind: "function",
        function: Function {
            name: &definition.name,
            description: &definition.description,
            parameters: &definition.input_schema,
        },
    }
}

/// One of our messages in the form of the API: each result of a call is a message of its own, and
/// its pictures are in a message of the user after all results.
fn messages(message: &ChatMessage) -> Vec<Message<'_>> {
    let outcomes: Vec<_> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::ToolOutcome(outcome) => Some(outcome),
            _ => None,
        })
        .collect();
    let mut sent: Vec<_> = outcomes.iter().map(|outcome| result(outcome)).collect();
    let images = outcomes.iter().flat_map(|outcome| &outcome.images);
    let images: Vec<_> = images
        .map(|image| SentPart::ImageUrl {
            image_url: ImageUrl {
                url: format!("data:{};base64,{}", image.mime_type, image.data),
            },
        })
        .collect();
    if !images.is_empty() {
        let told = SentPart::Text {
            text: "The pictures in the results above:",
        };
        sent.push(Message {
            role: Speaker::User.as_str(),
            content: Some(MessageContent::Parts(
                std::iter::once(told).chain(images).collect(),
            )),
            ..Message::default()
        });
    }
    let text = message.joined_text();
    let tool_calls: Vec<_> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::ToolCall(call) => Some(sent_call(call)),
            _ => None,
        })
        .collect();
    if !text.is_empty() || !tool_calls.is_empty() || sent.is_empty() {
        let content =
            (!text.is_empty() || tool_calls.is_empty()).then_some(MessageContent::Text(text));
        sent.push(Message {
            role: message.speaker.as_str(),
            content,
            tool_calls,
            tool_call_id: None,
        });
    }
    sent
}

fn result(outcome: &ToolOutcome) -> Message<'_> {
    // The API has no member for this, and a model must not take the text for a result.
    let text = if outcome.is_error {
        format!("Error: {}", outcome.text)
    } else {
        outcome.text.clone()
    };
    Message {
        role: "tool",
        content: Some(MessageContent::Text(text)),
        tool_call_id: Some(&outcome.id),
        ..Message::default()
    }
}

fn sent_call(call: &ToolCall) -> SentCall<'_> {
    // Servers decode the text, and refuse the whole request if it is no JSON.
    let input = call.parsed_input().unwrap_or_else(|_| Raw::empty_object());
    SentCall {
        id: &call.id,
        kind: "function",
        function: SentFunction {
            name: &call.name,
            arguments: input.as_str().to_owned(),
        },
    }
}

/// Decodes one event, and updates the answer.
pub(super) fn read(data: &[u8], answer: &mut Collected) -> Result<Step, serde_json::Error> {
    if data.trim_ascii() == DONE {
        answer.end_calls();
        return Ok(Step::End);
    }
    let chunk: Chunk = serde_json::from_slice(data)?;
    if let Some(failure) = chunk.error {
        return Ok(Step::Failure(failure.message));
    }
    let finish = &mut answer.finish;
    finish.model = chunk.model.or(finish.model.take());
    if let Some(usage) = chunk.usage {
        finish.usage.input_tokens = usage.prompt_tokens;
        finish.usage.output_tokens = usage.completion_tokens;
    }
    let Some(choice) = chunk.choices.into_iter().next() else {
        return Ok(Step::Next);
    };
    // A refusal is part of the text of the model.
    answer.say(choice.delta.content.or(choice.delta.refusal));
    for call in choice.delta.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        // Some servers number the calls, others send each in one piece without a number.
        let name = function.name.filter(|name| !name.is_empty());
        let index = match call.index {
            Some(index) => index,
            None if name.is_some() => answer.next_call(),
            None => answer.next_call().saturating_sub(1),
        };
        if let Some(name) = name {
            let id = call.id.filter(|id| !id.is_empty());
            let id = id.unwrap_or_else(|| format!("call_{index}"));
            answer.begin_call(index, id, name);
        }
        if let Some(piece) = function.arguments {
            answer.continue_call(index, &piece);
        }
    }
    if let Some(reason) = choice.finish_reason {
        answer.finish.stop_reason = Some(reason);
        answer.end_calls();
    }
    Ok(Step::Next)
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<OpenAiChoice>,
    usage: Option<OpenAiUsage>,
    error: Option<OpenAiError>,
}

#[derive(Deserialize)]
struct OpenAiChoice {
    #[serde(default)]
    delta: OpenAiDelta,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct OpenAiDelta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize, Default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OpenAiError {
    message: String,
}
