//! The Messages API of Anthropic.

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Serialize};

use super::answer::{Collected, Finish, Step};
use super::question::{ChatMessage, MessagePart, Question, ToolDefinition, ToolOutcome};

/// The path of the endpoint for messages.
pub(super) const PATH: &str = "/v1/messages";

/// The default of `max_tokens`, which the API requires. Every model supports this number.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    messages: Vec<Message<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Raw,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: MessageContent<'a>,
}

/// A single text is sent as a string, which servers that imitate the API know best.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(&'a str),
    Blocks(Vec<SentBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentBlock<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Raw,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<ResultBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultBlock<'a> {
    Text { text: &'a str },
    Image { source: ImageSource<'a> },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

pub(super) fn body(question: &Question) -> Body<'_> {
    Body {
        model: &question.model,
        max_tokens: question.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        system: question.system.as_deref(),
        tools: question.tools.iter().map(tool).collect(),
        messages: question.messages.iter().map(message).collect(),
        stream: true,
    }
}

fn tool(definition: &ToolDefinition) -> AnthropicTool<'_> {
    AnthropicTool {
        name: &definition.name,
        description: &definition.description,
        input_schema: &definition.input_schema,
    }
}

fn message(message: &ChatMessage) -> Message<'_> {
    let content = match message.parts.as_slice() {
        [MessagePart::Text(text)] => MessageContent::Text(text),
        parts => MessageContent::Blocks(parts.iter().filter_map(block).collect()),
    };
    Message {
        role: message.speaker.as_str(),
        content,
    }
}

/// The API refuses empty texts.
fn block(part: &MessagePart) -> Option<SentBlock<'_>> {
    Some(match part {
        MessagePart::Text(text) if text.is_empty() => return None,
        MessagePart::Text(text) => SentBlock::Text { text },
        MessagePart::ToolCall(call) => SentBlock::ToolUse {
            id: &call.id,
            name: &call.name,
            // The API takes objects only. The result of such a call says what was wrong.
            input: call.parsed_input().unwrap_or_else(|_| Raw::empty_object()),
        },
        MessagePart::ToolOutcome(outcome) => SentBlock::ToolResult {
            tool_use_id: &outcome.id,
            content: result_blocks(outcome),
            is_error: outcome.is_error,
        },
    })
}

fn result_blocks(outcome: &ToolOutcome) -> Vec<ResultBlock<'_>> {
    let text = (!outcome.text.is_empty()).then_some(ResultBlock::Text {
        text: &outcome.text,
    });
    let images = outcome.images.iter().map(|image| ResultBlock::Image {
        source: ImageSource {
            kind: "base64",
            media_type: &image.mime_type,
            data: &image.data,
        },
    });
    text.into_iter().chain(images).collect()
}

/// Decodes one event, and updates the answer. Unknown events are ignored, for forward compatibility.
pub(super) fn read(data: &[u8], answer: &mut Collected) -> Result<Step, serde_json::Error> {
    match serde_json::from_slice(data)? {
        Event::MessageStart { message } => {
            answer.finish.model = message.model;
            note(&mut answer.finish, &message.usage);
        }
        Event::ContentBlockStart {
            index,
            content_block,
        } => match content_block {
            AnthropicBlock {
                id: Some(id),
                name: Some(name),
                ..
            } => answer.begin_call(index, id, name),
            AnthropicBlock { text, .. } => answer.say(text),
        },
        Event::ContentBlockDelta { index, delta } => {
            if let Some(piece) = delta.partial_json {
                answer.continue_call(index, &piece);
            }
            answer.say(delta.text);
        }
        Event::ContentBlockStop { index } => answer.end_call(index),
        Event::MessageDelta { delta, usage } => {
            let finish = &mut answer.finish;
            finish.stop_reason = delta.stop_reason.or(finish.stop_reason.take());
            note(finish, &usage);
        }
        Event::MessageStop => return Ok(Step::End),
        Event::Error { error } => return Ok(Step::Failure(error.message)),
        Event::Other => {}
    }
    Ok(Step::Next)
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: AnthropicMessage,
    },
    ContentBlockStart {
        #[serde(default)]
        index: usize,
        content_block: AnthropicBlock,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: usize,
        delta: AnthropicDelta,
    },
    ContentBlockStop {
        #[serde(default)]
        index: usize,
    },
    MessageDelta {
        delta: AnthropicMessageDelta,
        #[serde(default)]
        usage: AnthropicUsage,
    },
    MessageStop,
    Error {
        error: AnthropicError,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct AnthropicMessage {
    model: Option<String>,
    #[serde(default)]
    usage: AnthropicUsage,
}

/// Blocks of other kinds, such as thinking, have neither `text` nor a `name`.
#[derive(Deserialize)]
struct AnthropicBlock {
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicDelta {
    text: Option<String>,
    partial_json: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicMessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct AnthropicError {
    message: String,
}

/// The last count that an event reports is the final one.
fn note(finish: &mut Finish, counted: &AnthropicUsage) {
    let usage = &mut finish.usage;
    usage.input_tokens = counted.input_tokens.or(usage.input_tokens);
    usage.output_tokens = counted.output_tokens.or(usage.output_tokens);
}
