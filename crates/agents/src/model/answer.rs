//! The streamed answer of a model.

use std::time::Duration;

use plexus_mcp_client::http::{EventSource, HttpError};
use plexus_mcp_wire::sse::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::ModelEndpoint;
use super::error::ModelError;
use super::id::Provider;
use super::{anthropic, openai};
use plexus_mcp_builtins::arbor::MAX_CONTENT_BYTES;

/// A streamed answer. Dropping it closes the connection, so that the model's server stops.
#[derive(Debug)]
pub struct AnswerStream {
    endpoint: ModelEndpoint,
    events: EventSource,
    response_timeout: Duration,
    received: usize,
    finish: Finish,
    is_over: bool,
}

/// The metadata of a complete answer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Finish {
    /// The name of the model.
    pub model: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The token usage.
    pub usage: Usage,
}

/// The token usage of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Usage {
    /// Number of tokens that the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Number of tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// The meaning of an event of the stream.
pub(super) enum Step {
    /// A part of the answer.
    Text(String),
    /// An event that is ignored.
    Nothing,
    /// The answer is complete.
    End,
    /// The model's server failed, for this reason.
    Failure(String),
}

impl AnswerStream {
    pub(super) fn new(endpoint: ModelEndpoint, events: EventSource, timeout: Duration) -> Self {
        Self {
            endpoint,
            events,
            response_timeout: timeout,
            received: 0,
            finish: Finish::default(),
            is_over: false,
        }
    }

    /// Returns the next part of the text; `None` when the answer is complete. A stream that ends
    /// without its final event is an error.
    ///
    /// # Errors
    /// The rest of the answer cannot be received.
    pub async fn next(&mut self) -> Result<Option<String>, ModelError> {
        let provider = self.endpoint.provider;
        while !self.is_over {
            let event = tokio::time::timeout(self.response_timeout, self.events.next()).await;
            let event = event.map_err(|_elapsed| ModelError::Silent {
                provider,
                after: self.response_timeout,
            })?;
            let step = match event {
                Some(Ok(event)) => self.read(&event)?,
                Some(Err(HttpError::EventTooLong { limit, .. })) => {
                    return Err(ModelError::TooLong { provider, limit });
                }
                Some(Err(error)) => {
                    tracing::debug!(%provider, %error, "the answer of a model broke off");
                    return Err(ModelError::Unfinished(provider));
                }
                // Some servers that are compatible with OpenAI end the stream without `[DONE]`.
                None if provider == Provider::OpenAi && self.finish.stop_reason.is_some() => {
                    Step::End
                }
                None => return Err(ModelError::Unfinished(provider)),
            };
            match step {
                Step::Text(text) => return self.counted(text).map(Some),
                Step::Nothing => {}
                Step::End => self.is_over = true,
                Step::Failure(said) => {
                    let said = self.endpoint.quoted(&said);
                    return Err(ModelError::Failed { provider, said });
                }
            }
        }
        Ok(None)
    }

    /// The metadata of the answer so far; complete when the answer is.
    pub fn finish(&self) -> &Finish {
        &self.finish
    }

    fn read(&mut self, event: &Event) -> Result<Step, ModelError> {
        if event.data.is_empty() {
            return Ok(Step::Nothing);
        }
        let read = match self.endpoint.provider {
            Provider::Anthropic => anthropic::read(&event.data, &mut self.finish),
            Provider::OpenAi => openai::read(&event.data, &mut self.finish),
        };
        read.map_err(|error| ModelError::Unreadable {
            provider: self.endpoint.provider,
            why: self.endpoint.quoted(&error.to_string()),
        })
    }

    fn counted(&mut self, text: String) -> Result<String, ModelError> {
        self.received += text.len();
        if self.received > MAX_CONTENT_BYTES {
            return Err(ModelError::TooLong {
                provider: self.endpoint.provider,
                limit: MAX_CONTENT_BYTES,
            });
        }
        Ok(text)
    }
}
