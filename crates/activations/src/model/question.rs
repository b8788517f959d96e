//! What a model is asked.

use super::id::Provider;

/// What a model is asked.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct Question {
    /// Who serves the model.
    pub provider: Provider,
    /// Which model.
    pub model: String,
    /// Where it is served, if not where the provider usually is.
    pub base_url: Option<String>,
    /// How it is to answer.
    pub system: Option<String>,
    /// The conversation, which ends with what the user says.
    pub messages: Vec<Message>,
    /// How much it may say.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by callers, member by member"
)]
pub struct Message {
    /// Who says it.
    pub speaker: Speaker,
    /// What is said.
    pub text: String,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two sides")]
pub enum Speaker {
    /// The human.
    User,
    /// The model.
    Assistant,
}

impl Speaker {
    /// The name that both APIs have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}
