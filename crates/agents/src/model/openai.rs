//! The chat completions API of OpenAI and of compatible servers.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Finish, Step};
use super::endpoint::ModelEndpoint;
use super::question::Question;

/// The path of the endpoint for chat completions.
pub(super) const PATH: &str = "/chat/completions";

/// The data of the final event of a stream.
const DONE: &[u8] = b"[DONE]";

pub(super) fn body(question: &Question, endpoint: &ModelEndpoint) -> Value {
    let system = question.system.iter();
    let system = system.map(|text| json!({ "role": "system", "content": text }));
    let said = question.messages.iter();
    let said =
        said.map(|message| json!({ "role": message.speaker.as_str(), "content": message.text }));
    let messages: Vec<_> = system.chain(said).collect();
    let mut body = json!({
        "model": question.model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let (Some(limit), Some(body)) = (question.max_tokens, body.as_object_mut()) {
        // OpenAI renamed this member, and its newer models refuse the old name. Compatible servers may
        // know only the old name.
        let is_openai = endpoint.base.url().starts_with("https://api.openai.com/");
        let name = if is_openai {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.insert(name.to_owned(), limit.into());
    }
    body
}

/// Decodes one event, and updates `finish`.
pub(super) fn read(data: &[u8], finish: &mut Finish) -> Result<Step, serde_json::Error> {
    if data.trim_ascii() == DONE {
        return Ok(Step::End);
    }
    let chunk: Chunk = serde_json::from_slice(data)?;
    if let Some(failure) = chunk.error {
        return Ok(Step::Failure(failure.message));
    }
    finish.model = chunk.model.or(finish.model.take());
    if let Some(usage) = chunk.usage {
        finish.usage.input_tokens = usage.prompt_tokens;
        finish.usage.output_tokens = usage.completion_tokens;
    }
    let Some(choice) = chunk.choices.into_iter().next() else {
        return Ok(Step::Nothing);
    };
    finish.stop_reason = choice.finish_reason.or(finish.stop_reason.take());
    // A refusal is part of the text of the model.
    let text = choice.delta.content.or(choice.delta.refusal);
    Ok(match text {
        Some(text) if !text.is_empty() => Step::Text(text),
        _ => Step::Nothing,
    })
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
