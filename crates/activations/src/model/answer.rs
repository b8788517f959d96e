//! What a model says, as it says it.

use std::time::Duration;

use plexus_client::http::{EventSource, HttpError};
use plexus_wire::sse::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::Endpoint;
use super::error::ModelError;
use super::id::Provider;
use super::{anthropic, openai};
use crate::arbor::MAX_CONTENT;

/// An answer on its way. Dropping it tells the model's server to stop.
#[derive(Debug)]
pub struct Answer {
    endpoint: Endpoint,
    events: EventSource,
    patience: Duration,
    received: usize,
    finish: Finish,
    is_over: bool,
}

/// What is known of an answer when it is over.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Finish {
    /// Which model it was.
    pub model: Option<String>,
    /// Why it stopped.
    pub stop_reason: Option<String>,
    /// What it cost.
    pub usage: Usage,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Usage {
    /// How many tokens the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// How many tokens it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// What an event of the stream means.
pub(super) enum Step {
    /// The model says this.
    Text(String),
    /// Nothing that matters here.
    Nothing,
    /// The answer is complete.
    End,
    /// The model's server failed, and says why.
    Failure(String),
}

impl Answer {
    pub(super) fn new(endpoint: Endpoint, events: EventSource, patience: Duration) -> Self {
        Self {
            endpoint,
            events,
            patience,
            received: 0,
            finish: Finish::default(),
            is_over: false,
        }
    }

    /// The next piece of text; none when the answer is complete. An answer that only stops is not.
    ///
    /// # Errors
    /// The rest of the answer will not come, for the reason given.
    pub async fn next(&mut self) -> Result<Option<String>, ModelError> {
        let provider = self.endpoint.provider;
        while !self.is_over {
            let event = tokio::time::timeout(self.patience, self.events.next()).await;
            let event = event.map_err(|_elapsed| ModelError::Silent {
                provider,
                after: self.patience,
            })?;
            let step = match event {
                Some(Ok(event)) => self.read(&event)?,
                Some(Err(HttpError::EventTooLong { limit, .. })) => {
                    return Err(ModelError::TooLong { provider, limit });
                }
                Some(Err(error)) => {
                    tracing::debug!(%provider, %error, "an answer broke off");
                    return Err(ModelError::Unfinished(provider));
                }
                // Not everybody who does as OpenAI does says that it is done.
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

    /// What is known of the answer so far; all of it when it is over.
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
        if self.received > MAX_CONTENT {
            return Err(ModelError::TooLong {
                provider: self.endpoint.provider,
                limit: MAX_CONTENT,
            });
        }
        Ok(text)
    }
}
