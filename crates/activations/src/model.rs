//! Language models, over HTTP: the Messages API of Anthropic, and the chat completions of OpenAI,
//! which many others serve too. Answers are streamed.
//!
//! Keys come from the environment, `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`, and so may base URLs,
//! `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL`. A key goes to the origin of its base URL and nowhere
//! else, and appears in no error, log or `Debug` text, even if the model's server repeats it.
//!
//! Nothing is sent twice: whoever is refused is told when to try again.

mod answer;
mod anthropic;
mod endpoint;
mod error;
mod id;
mod models;
mod openai;
mod question;

pub use answer::{Answer, Finish, Usage};
pub use error::ModelError;
pub use id::{ModelId, Provider};
pub use models::Models;
pub use question::{Message, Question, Speaker};
