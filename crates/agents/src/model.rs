//! HTTP clients of language models: the Messages API of Anthropic, and the chat completions API of
//! OpenAI, which many other servers implement. Answers are streamed.
//!
//! Keys come from the environment, `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`, and so may base URLs,
//! `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL`. A key goes to the origin of its base URL and nowhere
//! else, and appears in no error, log or `Debug` text, even if the model's server repeats it.
//!
//! A request is sent only once; the error for a refused request says when to try again.

mod answer;
mod anthropic;
mod endpoint;
mod error;
mod id;
mod models;
mod openai;
mod question;

pub use answer::{AnswerPart, AnswerStream, Finish, Usage};
pub use error::ModelError;
pub use id::{ModelId, Provider};
pub use models::Models;
pub use question::{
    ChatMessage, Image, MessagePart, Question, Speaker, ToolCall, ToolDefinition, ToolOutcome,
};
