//! Sub-agents: the tool `Agent` has another agent carry out a task (S001-11).

use std::fmt::Write;
use std::sync::{Arc, Weak};

use plexus_mcp_agents::model::{ToolDefinition, Usage};
use plexus_mcp_core::Boxed;
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::agent::{Agent, AgentParts, End, ModelChoice, PromptOutcome};
use crate::model_client::ModelClient;
use crate::permission::{Risk, Subject};
use crate::registry::Registry;
use crate::schema::{self, SetupError};
use crate::tool::{Tool, ToolContext, ToolOutput};
use crate::transcript::Transcript;

/// The name of the tool.
pub const AGENT: &str = "Agent";

const DESCRIPTION: &str = "\
Has another agent carry out a task, and returns its final answer. It has the same tools except this one, \
and knows nothing of this conversation: write down everything that it needs. Several can work at the same \
time if you call this tool several times in one answer.";

/// The arguments of the tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentArguments {
    /// A short description of the task, in three to five words.
    description: String,
    /// The task.
    prompt: String,
    /// A kind of agent, by its name.
    #[serde(default)]
    subagent_type: Option<String>,
    /// The model, if not the same.
    #[serde(default)]
    model: Option<String>,
    /// How often the model may be asked.
    #[serde(default)]
    max_turns: Option<u32>,
}

/// The result of the tool.
#[derive(Debug, Serialize)]
struct AgentReport<'a> {
    status: &'static str,
    agent_id: &'a str,
    content: &'a str,
    tool_calls: u64,
    duration_ms: u128,
    usage: Usage,
}

/// Makes the model of a sub-agent from its name.
pub type ChooseModel = Arc<dyn Fn(&str) -> Result<crate::agent::ModelChoice, String> + Send + Sync>;

/// The tool.
pub struct AgentTool {
    client: Arc<dyn ModelClient>,
    model: ModelChoice,
    system: Arc<dyn Fn() -> String + Send + Sync>,
    /// The registry that has this tool.
    registry: Weak<Registry>,
    max_turns: Option<u32>,
    /// How deep sub-agents may be nested.
    max_depth: usize,
    choose_model: ChooseModel,
    schema: Raw,
}

impl AgentTool {
    /// A tool for agents like `parent`. Its sub-agents have the same tools, rules and observer.
    ///
    /// # Errors
    /// The schema of its arguments cannot be encoded; this is a mistake in the program.
    pub fn new(
        parent: &AgentParts,
        max_depth: usize,
        choose_model: ChooseModel,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            client: Arc::clone(&parent.client),
            model: parent.model.clone(),
            system: Arc::clone(&parent.system),
            registry: Arc::downgrade(&parent.registry),
            max_turns: parent.max_turns,
            max_depth,
            choose_model,
            schema: schema::of::<AgentArguments>()?,
        })
    }

    /// The sub-agent for a call, or why there is none.
    fn parts(
        &self,
        context: &ToolContext,
        arguments: &AgentArguments,
    ) -> Result<AgentParts, String> {
        if let Some(kind) = &arguments.subagent_type {
            return Err(format!("there is no subagent_type {kind:?}; leave it out"));
        }
        if context.agent.depth >= self.max_depth {
            return Err(format!(
                "sub-agents may be nested {} deep at most; carry out the task yourself",
                self.max_depth
            ));
        }
        let model = match &arguments.model {
            Some(model) => (self.choose_model)(model)?,
            None => self.model.clone(),
        };
        let registry = self.registry.upgrade().ok_or("the agent has ended")?;
        let system = Arc::clone(&self.system);
        let mut parts = AgentParts::new(
            Arc::clone(&self.client),
            model,
            &registry,
            move || system(),
            Arc::clone(&context.observer),
        );
        parts.id = context.agent.child(&arguments.description);
        parts.max_turns = arguments.max_turns.or(self.max_turns);
        // The tools are those of the parent as they are now.
        let is_deepest = parts.id.depth >= self.max_depth;
        let shown = registry.definitions().into_iter();
        let shown: Vec<ToolDefinition> = shown
            .filter(|tool| !(is_deepest && tool.name == AGENT))
            .collect();
        parts.definitions = Arc::new(move || shown.clone());
        Ok(parts)
    }
}

impl Tool for AgentTool {
    fn name(&self) -> &str {
        AGENT
    }

    fn description(&self) -> &str {
        DESCRIPTION
    }

    fn input_schema(&self) -> &Raw {
        &self.schema
    }

    /// Each call of the sub-agent needs permission of its own.
    fn requires_permission(&self, _input: &Raw) -> bool {
        false
    }

    fn subject(&self, _input: &Raw) -> Subject {
        Subject::of_host(&self.definition(), Risk::Low)
    }

    fn runs_in_parallel(&self) -> bool {
        true
    }

    fn execute(&self, context: ToolContext, input: Raw) -> Boxed<ToolOutput> {
        let prepared = input
            .decode::<AgentArguments>()
            .map_err(|error| format!("the arguments of {AGENT} are wrong: {error}"))
            .and_then(|arguments| {
                let parts = self.parts(&context, &arguments)?;
                Ok((parts, arguments.prompt))
            });
        Box::pin(async move {
            let (parts, prompt) = match prepared {
                Ok(prepared) => prepared,
                Err(wrong) => return ToolOutput::error(wrong),
            };
            let transcript = Transcript::unstored();
            let id = transcript.id().to_owned();
            let began = Instant::now();
            let ended = async {
                let mut agent = Agent::new(parts, transcript).await?;
                agent.prompt(&prompt, &context.cancel).await
            };
            match ended.await {
                Ok(outcome) => report(&id, began, &outcome),
                Err(error) => ToolOutput::error(format!("the sub-agent failed: {error}")),
            }
        })
    }
}

fn report(id: &str, began: Instant, outcome: &PromptOutcome) -> ToolOutput {
    let status = match outcome.end {
        End::Answered => "completed",
        End::CutOff => "cut_off",
        End::MaxTurns => "max_turns",
        End::Interrupted => "interrupted",
    };
    let report = AgentReport {
        status,
        agent_id: id,
        content: &outcome.text,
        tool_calls: outcome.calls,
        duration_ms: began.elapsed().as_millis(),
        usage: outcome.usage,
    };
    let mut text = outcome.text.clone();
    if outcome.end != End::Answered {
        let written = write!(text, "\n[the sub-agent ended before it was done: {status}]");
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }
    ToolOutput {
        text,
        is_error: outcome.end == End::Interrupted,
        raw: Raw::encode(&report).ok(),
        ..ToolOutput::default()
    }
}

impl std::fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentTool")
            .field("max_depth", &self.max_depth)
            .finish_non_exhaustive()
    }
}
