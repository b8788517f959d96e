//! An agent with a scripted model, and tools that record their calls.

use std::sync::{Arc, Mutex};

use plexus_mcp_agents::model::{Models, Provider};
use plexus_mcp_config as config;
use plexus_mcp_core::Boxed;
use plexus_mcp_host::agent::{Agent, AgentParts, ModelChoice};
use plexus_mcp_host::observer::{AgentEvent, AgentId, Observer};
use plexus_mcp_host::permission::{
    Mode, PermissionAnswer, PermissionQuestion, Permissions, Prompter, Risk, Subject,
};
use plexus_mcp_host::transcript::Transcript;
use plexus_mcp_host::{Registry, Tool, ToolContext, ToolOutput};
use plexus_mcp_wire::Raw;
use plexus_testkit::model::{Dialect, MODELS, ScriptedModel};
use serde_json::Value;

/// A context window that no test fills.
const WINDOW_TOKENS: u64 = 200_000;

pub(crate) fn models(model: &ScriptedModel) -> Models {
    let [anthropic, openai] = Dialect::ALL.map(|dialect| model.base_url(dialect));
    Models::from_environment(move |name| match name {
        "ANTHROPIC_BASE_URL" => Some(anthropic.clone().into()),
        "OPENAI_BASE_URL" => Some(openai.clone().into()),
        _ => None,
    })
}

pub(crate) fn choice(dialect: Dialect) -> ModelChoice {
    ModelChoice {
        provider: match dialect {
            Dialect::Anthropic => Provider::Anthropic,
            Dialect::OpenAi => Provider::OpenAi,
        },
        name: MODELS[0].to_owned(),
        base_url: None,
        max_tokens: None,
        context_window_tokens: WINDOW_TOKENS,
    }
}

/// A registry whose rules are these, in this mode, with these answers of the user.
pub(crate) fn registry(
    rules: &config::Policy,
    mode: Mode,
    prompter: Option<Arc<dyn Prompter>>,
) -> Arc<Registry> {
    Arc::new(Registry::new(Arc::new(Permissions::new(
        rules, mode, prompter,
    ))))
}

/// A registry that allows everything.
pub(crate) fn permissive() -> Arc<Registry> {
    registry(&config::Policy::default(), Mode::BypassPermissions, None)
}

pub(crate) fn parts(
    model: &ScriptedModel,
    dialect: Dialect,
    registry: &Arc<Registry>,
    events: &Arc<Events>,
) -> AgentParts {
    AgentParts::new(
        Arc::new(models(model)),
        choice(dialect),
        registry,
        || "Be brief.".to_owned(),
        Arc::clone(events) as Arc<dyn Observer>,
    )
}

pub(crate) async fn agent(parts: AgentParts) -> Agent {
    Agent::new(parts, Transcript::unstored()).await.unwrap()
}

/// Records all events, as text.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Vec<String>>);

impl Events {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Events {
    fn event(&self, agent: &AgentId, event: &AgentEvent) {
        let text = match event {
            AgentEvent::Text(text) => format!("text {text}"),
            AgentEvent::CallBegan(call) => format!("call {}", call.name),
            AgentEvent::CallEnded { output, .. } => format!("result {}", output.text),
            AgentEvent::CallProgress { progress, .. } => format!("progress {}", progress.progress),
            AgentEvent::Retrying { error, .. } => format!("retrying {error}"),
            AgentEvent::Compacted => "compacted".to_owned(),
            _ => return,
        };
        let text = if agent.depth > 0 {
            format!("{agent}: {text}")
        } else {
            text
        };
        self.0.lock().unwrap().push(text);
    }
}

type Answer = dyn Fn(Value) -> Boxed<ToolOutput> + Send + Sync;

/// A tool that records its inputs, and answers as the test says.
pub(crate) struct TestTool {
    name: String,
    schema: Raw,
    pub(crate) risk: Risk,
    inputs: Mutex<Vec<Value>>,
    answer: Box<Answer>,
}

impl TestTool {
    pub(crate) fn new(name: &str, text: &str) -> Arc<Self> {
        let text = text.to_owned();
        Self::answering(name, move |_| {
            let output = ToolOutput::text(text.clone());
            Box::pin(std::future::ready(output))
        })
    }

    pub(crate) fn answering(
        name: &str,
        answer: impl Fn(Value) -> Boxed<ToolOutput> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            schema: Raw::from_static(r#"{"type":"object"}"#),
            risk: Risk::High,
            inputs: Mutex::default(),
            answer: Box::new(answer),
        })
    }

    pub(crate) fn inputs(&self) -> Vec<Value> {
        self.inputs.lock().unwrap().clone()
    }
}

impl Tool for TestTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &'static str {
        "A tool of the test"
    }

    fn input_schema(&self) -> &Raw {
        &self.schema
    }

    fn requires_permission(&self, _input: &Raw) -> bool {
        true
    }

    fn subject(&self, _input: &Raw) -> Subject {
        Subject::of_host(&self.definition(), self.risk)
    }

    fn execute(&self, _context: ToolContext, input: Raw) -> Boxed<ToolOutput> {
        let input: Value = input.decode().unwrap();
        self.inputs.lock().unwrap().push(input.clone());
        (self.answer)(input)
    }
}

/// Answers every question in the same way, and records them.
pub(crate) struct Answers {
    answer: Option<PermissionAnswer>,
    questions: Mutex<Vec<PermissionQuestion>>,
}

impl Answers {
    pub(crate) fn always(answer: Option<PermissionAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answer,
            questions: Mutex::default(),
        })
    }

    pub(crate) fn questions(&self) -> Vec<PermissionQuestion> {
        self.questions.lock().unwrap().clone()
    }
}

impl Prompter for Answers {
    fn ask(&self, question: PermissionQuestion) -> Boxed<Option<PermissionAnswer>> {
        self.questions.lock().unwrap().push(question);
        Box::pin(std::future::ready(self.answer.clone()))
    }
}

/// The names of the tools that a request carries, in order.
pub(crate) fn tools_of(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| {
        let name = tool.get("name").unwrap_or(&tool["function"]["name"]);
        name.as_str().unwrap().to_owned()
    };
    tools.iter().map(name).collect()
}

/// The results of calls in the last message of a request, each with whether it is an error.
pub(crate) fn results_of(body: &Value) -> Vec<(String, bool)> {
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "tool" {
        let results = messages.iter().rev();
        let results = results.take_while(|message| message["role"] == "tool");
        let mut results: Vec<_> = results
            .map(|message| {
                let text = message["content"].as_str().unwrap();
                match text.strip_prefix("Error: ") {
                    Some(text) => (text.to_owned(), true),
                    None => (text.to_owned(), false),
                }
            })
            .collect();
        results.reverse();
        return results;
    }
    let parts = last["content"].as_array().unwrap().iter();
    let results = parts.filter(|part| part["type"] == "tool_result");
    results
        .map(|part| {
            let text = part["content"][0]["text"].as_str().unwrap_or_default();
            (text.to_owned(), part["is_error"] == true)
        })
        .collect()
}
