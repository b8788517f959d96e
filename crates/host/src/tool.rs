//! The contract between a tool and the agent loop (S001-05).

use std::sync::Arc;

use plexus_mcp_agents::model::{Image, ToolDefinition};
use plexus_mcp_core::Boxed;
use plexus_mcp_wire::Raw;
use tokio_util::sync::CancellationToken;

use crate::observer::{AgentId, Observer};
use crate::permission::Subject;

/// A tool that the model may call.
pub trait Tool: Send + Sync + 'static {
    /// The name that the model sees: at most 64 letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// The description that the model sees.
    fn description(&self) -> &str;

    /// The JSON Schema of the input.
    fn input_schema(&self) -> &Raw;

    /// Whether a call with this input needs permission. A rule that denies a call holds
    /// nevertheless.
    fn requires_permission(&self, input: &Raw) -> bool;

    /// What a permission rule can match, and what the user is asked about.
    fn subject(&self, input: &Raw) -> Subject;

    /// Whether calls may run at the same time as others: the tool changes nothing that another call
    /// could depend on.
    fn runs_in_parallel(&self) -> bool {
        false
    }

    /// Carries out a call. Dropping the future cancels it.
    fn execute(&self, context: ToolContext, input: Raw) -> Boxed<ToolOutput>;

    /// The definition that the model is given.
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            input_schema: self.input_schema().clone(),
        }
    }
}

/// The surroundings of a call.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The agent that calls.
    pub agent: AgentId,
    /// The model's id of the call.
    pub call: Arc<str>,
    /// Is told of progress.
    pub observer: Arc<dyn Observer>,
    /// Cancelled when the turn of the agent is interrupted.
    pub cancel: CancellationToken,
}

impl ToolContext {
    /// The context of the call `call` by `agent`.
    pub fn new(
        agent: AgentId,
        call: &str,
        observer: Arc<dyn Observer>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            agent,
            call: call.into(),
            observer,
            cancel,
        }
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("agent", &self.agent)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The result as the model reads it.
    pub text: String,
    /// Pictures, for models that take them.
    pub images: Vec<Image>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Whether the call was not made, because permission is missing.
    pub is_refused: bool,
    /// The result as the server gave it, for transcripts and for callers of the library.
    pub raw: Option<Raw>,
}

impl ToolOutput {
    /// A result of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The result of a call that was not made, because permission is missing.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self {
            is_refused: true,
            ..Self::error(reason)
        }
    }

    /// The result of a call that failed, for this reason (C31).
    pub fn error(reason: impl Into<String>) -> Self {
        Self {
            text: reason.into(),
            is_error: true,
            ..Self::default()
        }
    }
}
