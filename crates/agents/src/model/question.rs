//! Questions to language models: the conversation so far, and the tools that the model may call.

use plexus_mcp_wire::{Limits, Raw};
use serde::{Deserialize, Serialize};

use super::id::Provider;

/// A question to a model.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct Question {
    /// The provider of the model.
    pub provider: Provider,
    /// The name of the model.
    pub model: String,
    /// The base URL of the model's API, if not that of the provider.
    pub base_url: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// The tools that the model may call, in the order in which it sees them.
    pub tools: Vec<ToolDefinition>,
    /// The conversation, which ends with a message of the user.
    pub messages: Vec<ChatMessage>,
    /// The maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ToolDefinition {
    /// Its name: at most 64 letters, digits, `_` and `-`, which every API accepts.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its input, sent to the model byte by byte.
    pub input_schema: Raw,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ChatMessage {
    /// The author of the message.
    pub speaker: Speaker,
    /// Its parts. A message of the user that answers calls has the results first.
    pub parts: Vec<MessagePart>,
}

impl ChatMessage {
    /// A message of text.
    pub fn text(speaker: Speaker, text: impl Into<String>) -> Self {
        let parts = vec![MessagePart::Text(text.into())];
        Self { speaker, parts }
    }

    /// The text of the message, without its other parts.
    pub fn joined_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "an API must be able to encode every part"
)]
pub enum MessagePart {
    /// Text.
    Text(String),
    /// A call of a tool by the model.
    ToolCall(ToolCall),
    /// The result of such a call.
    ToolOutcome(ToolOutcome),
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ToolCall {
    /// The model's id of the call, which its result repeats.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input as the model wrote it; empty if the model wrote none.
    pub input: String,
}

impl ToolCall {
    /// The input as JSON.
    ///
    /// # Errors
    /// It is no JSON object. The text tells the model what is wrong.
    pub fn parsed_input(&self) -> Result<Raw, String> {
        if self.input.trim().is_empty() {
            return Ok(Raw::empty_object());
        }
        let parsed = Raw::parse(self.input.clone().into(), &Limits::default());
        let parsed = parsed.map_err(|error| format!("the arguments are not JSON: {error}"))?;
        match parsed.kind() {
            plexus_mcp_wire::Kind::Object => Ok(parsed),
            _ => Err("the arguments must be a JSON object".to_owned()),
        }
    }
}

/// The result of a call, as a model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ToolOutcome {
    /// The id of the call.
    pub id: String,
    /// The result as text.
    pub text: String,
    /// Pictures in the result.
    pub images: Vec<Image>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct Image {
    /// The MIME type.
    pub mime_type: String,
    /// The bytes in Base64.
    pub data: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a conversation has two sides")]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Speaker {
    /// The name of the role in both APIs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_call_must_be_an_object() {
        let call = |input: &str| ToolCall {
            id: "1".to_owned(),
            name: "t".to_owned(),
            input: input.to_owned(),
        };
        assert_eq!(call(" ").parsed_input().unwrap().as_str(), "{}");
        let kept = r#"{"b": 1, "a":2}"#;
        assert_eq!(call(kept).parsed_input().unwrap().as_str(), kept);
        for (input, reason) in [
            ("{\"a\":", "not JSON"),
            ("[1]", "object"),
            ("x", "not JSON"),
        ] {
            let error = call(input).parsed_input().unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
