//! A question to a model.

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
    /// The conversation, which ends with a message of the user.
    pub messages: Vec<ChatMessage>,
    /// The maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ChatMessage {
    /// The author of the message.
    pub speaker: Speaker,
    /// The text of the message.
    pub text: String,
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
