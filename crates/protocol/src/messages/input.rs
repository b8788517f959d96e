//! `input_required`: the result by which a stateless server asks for more input.

use plexus_mcp_wire::{Object, Raw};
use serde::{Deserialize, Serialize};

use super::codec::{self, encodes};

/// An interim result: the call continues when the client retries it with the answers.
///
/// At least one of its two members is given.
#[derive(Debug, Clone, Default)]
pub struct InputRequiredResult {
    /// The questions, each an [`InputRequest`]. The answers have the same keys.
    pub input_requests: Object,
    /// Opaque state that the client sends back with the retry.
    pub request_state: Option<String>,
}

impl InputRequiredResult {
    /// Adds a question.
    pub fn ask(&mut self, key: impl Into<String>, request: &InputRequest) {
        self.input_requests.set(key.into(), request.to_raw());
    }

    /// This message as JSON.
    pub fn to_raw(&self) -> Raw {
        let mut result = Object::new();
        result.set("resultType", codec::to_raw("input_required"));
        if !self.input_requests.is_empty() {
            result.set("inputRequests", self.input_requests.clone().to_raw());
        }
        if let Some(state) = &self.request_state {
            result.set("requestState", codec::to_raw(state));
        }
        result.to_raw()
    }
}

/// A question inside a result: a request without an envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Raw>,
}

encodes!(InputRequest);
