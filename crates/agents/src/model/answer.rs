//! The streamed answer of a model.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use plexus_mcp_client::http::{EventSource, HttpError};
use plexus_mcp_wire::sse::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::ModelEndpoint;
use super::error::ModelError;
use super::id::Provider;
use super::question::ToolCall;
use super::{anthropic, openai};
use plexus_mcp_builtins::arbor::MAX_CONTENT_BYTES;

/// The maximum number of calls in one answer.
const MAX_CALLS: usize = 256;

/// A streamed answer. Dropping it closes the connection, so that the model's server stops.
#[derive(Debug)]
pub struct AnswerStream {
    endpoint: ModelEndpoint,
    events: EventSource,
    response_timeout: Duration,
    answer: Collected,
    is_over: bool,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a model writes texts and calls, and callers must use both"
)]
pub enum AnswerPart {
    /// The next piece of the text.
    Text(String),
    /// A call of a tool, complete.
    Call(ToolCall),
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

/// What to do after an event of the stream.
pub(super) enum Step {
    /// Receive the next event.
    Next,
    /// The answer is complete.
    End,
    /// The model's server failed, for this reason.
    Failure(String),
}

/// The answer as far as it was received.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) finish: Finish,
    /// Calls whose input is not complete, by their position in the answer.
    open: BTreeMap<usize, ToolCall>,
    /// The position of the next call without one.
    next_call: usize,
    /// Parts that the caller has not taken.
    ready: VecDeque<AnswerPart>,
    received_bytes: usize,
}

impl Collected {
    pub(super) fn say(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.received_bytes += text.len();
            self.ready.push_back(AnswerPart::Text(text));
        }
    }

    pub(super) fn begin_call(&mut self, index: usize, id: String, name: String) {
        self.end_call(index);
        self.next_call = self.next_call.max(index.saturating_add(1));
        self.received_bytes += id.len() + name.len();
        let input = String::new();
        self.open.insert(index, ToolCall { id, name, input });
    }

    pub(super) fn continue_call(&mut self, index: usize, piece: &str) {
        if let Some(call) = self.open.get_mut(&index) {
            self.received_bytes += piece.len();
            call.input.push_str(piece);
        }
    }

    pub(super) fn end_call(&mut self, index: usize) {
        if let Some(call) = self.open.remove(&index) {
            self.ready.push_back(AnswerPart::Call(call));
        }
    }

    pub(super) fn end_calls(&mut self) {
        let calls = std::mem::take(&mut self.open);
        self.ready.extend(calls.into_values().map(AnswerPart::Call));
    }

    /// The position of a call that the server did not number.
    pub(super) fn next_call(&self) -> usize {
        self.next_call
    }

    fn is_too_long(&self) -> bool {
        self.received_bytes > MAX_CONTENT_BYTES || self.next_call > MAX_CALLS
    }
}

impl AnswerStream {
    pub(super) fn new(endpoint: ModelEndpoint, events: EventSource, timeout: Duration) -> Self {
        Self {
            endpoint,
            events,
            response_timeout: timeout,
            answer: Collected::default(),
            is_over: false,
        }
    }

    /// Returns the next part of the answer; `None` when the answer is complete. A stream that ends
    /// without its final event is an error. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The rest of the answer cannot be received.
    pub async fn next(&mut self) -> Result<Option<AnswerPart>, ModelError> {
        loop {
            if let Some(part) = self.answer.ready.pop_front() {
                return Ok(Some(part));
            }
            if self.is_over {
                return Ok(None);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), ModelError> {
        let provider = self.endpoint.provider;
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
            None if provider == Provider::OpenAi && self.finish().stop_reason.is_some() => {
                Step::End
            }
            None => return Err(ModelError::Unfinished(provider)),
        };
        if self.answer.is_too_long() {
            let limit = MAX_CONTENT_BYTES;
            return Err(ModelError::TooLong { provider, limit });
        }
        match step {
            Step::Next => {}
            Step::End => self.is_over = true,
            Step::Failure(said) => {
                let said = self.endpoint.quoted(&said);
                return Err(ModelError::Failed { provider, said });
            }
        }
        Ok(())
    }

    /// The metadata of the answer so far; complete when the answer is.
    pub fn finish(&self) -> &Finish {
        &self.answer.finish
    }

    fn read(&mut self, event: &Event) -> Result<Step, ModelError> {
        if event.data.is_empty() {
            return Ok(Step::Next);
        }
        let read = match self.endpoint.provider {
            Provider::Anthropic => anthropic::read(&event.data, &mut self.answer),
            Provider::OpenAi => openai::read(&event.data, &mut self.answer),
        };
        read.map_err(|error| ModelError::Unreadable {
            provider: self.endpoint.provider,
            why: self.endpoint.quoted(&error.to_string()),
        })
    }
}
