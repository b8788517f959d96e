//! The Messages API of Anthropic.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Finish, Step};
use super::question::Question;

/// The path of the endpoint for messages.
pub(super) const PATH: &str = "/v1/messages";

/// The default of `max_tokens`, which the API requires. Every model supports this number.
const DEFAULT_MAX_TOKENS: u32 = 4096;

pub(super) fn body(question: &Question) -> Value {
    let messages = question.messages.iter();
    let messages: Vec<_> = messages
        .map(|message| json!({ "role": message.speaker.as_str(), "content": message.text }))
        .collect();
    let mut body = json!({
        "model": question.model,
        "max_tokens": question.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        "messages": messages,
        "stream": true,
    });
    if let (Some(system), Some(body)) = (&question.system, body.as_object_mut()) {
        body.insert("system".to_owned(), system.as_str().into());
    }
    body
}

/// Decodes one event, and updates `finish`. Unknown events are ignored, for forward compatibility.
pub(super) fn read(data: &[u8], finish: &mut Finish) -> Result<Step, serde_json::Error> {
    Ok(match serde_json::from_slice(data)? {
        Event::MessageStart { message } => {
            finish.model = message.model;
            note(finish, &message.usage);
            Step::Nothing
        }
        Event::ContentBlockStart { content_block } => said(content_block.text),
        Event::ContentBlockDelta { delta } => said(delta.text),
        Event::MessageDelta { delta, usage } => {
            finish.stop_reason = delta.stop_reason.or(finish.stop_reason.take());
            note(finish, &usage);
            Step::Nothing
        }
        Event::MessageStop => Step::End,
        Event::Error { error } => Step::Failure(error.message),
        Event::Other => Step::Nothing,
    })
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: AnthropicMessage,
    },
    ContentBlockStart {
        content_block: AnthropicBlock,
    },
    ContentBlockDelta {
        delta: AnthropicBlock,
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

/// Blocks of other kinds, such as thinking, have no `text`.
#[derive(Deserialize)]
struct AnthropicBlock {
    text: Option<String>,
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

fn said(text: Option<String>) -> Step {
    match text {
        Some(text) if !text.is_empty() => Step::Text(text),
        _ => Step::Nothing,
    }
}
