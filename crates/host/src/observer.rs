//! Events of agents, for user interfaces and logs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_agents::model::{ToolCall, Usage};
use plexus_mcp_core::Progress;

use crate::tool::ToolOutput;

/// An agent: the main one, or a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AgentId {
    /// How many agents are above it; 0 for the main one.
    pub depth: usize,
    /// The description that its parent gave it; empty for the main one.
    pub description: Arc<str>,
}

impl AgentId {
    /// The agent that the user talks to.
    pub fn main() -> Self {
        Self {
            depth: 0,
            description: "".into(),
        }
    }

    /// A sub-agent of this one.
    #[must_use]
    pub fn child(&self, description: &str) -> Self {
        Self {
            depth: self.depth + 1,
            description: description.into(),
        }
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.depth {
            0 => f.write_str("the agent"),
            _ => write!(f, "the sub-agent {:?}", &*self.description),
        }
    }
}

/// An event of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A request was sent to the model.
    Asked,
    /// A piece of the model's text.
    Text(String),
    /// A call begins.
    CallBegan(ToolCall),
    /// A call made progress.
    CallProgress {
        /// The model's id of the call.
        id: Arc<str>,
        /// The progress.
        progress: Progress,
    },
    /// A call wrote output.
    CallOutput {
        /// The model's id of the call.
        id: Arc<str>,
        /// A piece of its output.
        text: String,
    },
    /// A call ended.
    CallEnded {
        /// The model's id of the call.
        id: String,
        /// Its result.
        output: ToolOutput,
    },
    /// The model answered, with this token usage.
    Answered(Usage),
    /// The model could not be asked. The request is sent again; text of a broken answer is void.
    Retrying {
        /// After this time.
        after: Duration,
        /// Why it could not be asked.
        error: String,
    },
    /// The conversation was replaced by a summary.
    Compacted,
}

/// Is told of the events of agents. Called from the agents' tasks: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// An event of `agent`.
    fn event(&self, agent: &AgentId, event: &AgentEvent);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no state")]
pub struct NoObserver;

impl Observer for NoObserver {
    fn event(&self, _agent: &AgentId, _event: &AgentEvent) {}
}
