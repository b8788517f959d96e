//! Arguments of the tools. The doc comments are the descriptions in the schemas, which models read.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::claudecode::chat::ChatRequest;
use crate::claudecode::program::ChatOptions;
use crate::claudecode::sessions::NewSession;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateSession {
    /// A name that no other session has
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// The working directory of the agent
    #[schemars(length(min = 1))]
    working_dir: String,
    /// The model, such as opus, sonnet or haiku; if left out, the agent's default
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// The system prompt, which replaces the agent's default
    system_prompt: Option<String>,
    /// Whether the agent can ask for permissions; otherwise, actions that need one are denied
    #[serde(default = "default_loopback_enabled")]
    loopback_enabled: bool,
}

/// Arguments of `chat` and `chat_async` (S003-17, C13).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatArguments {
    /// Name of the session
    session_name: String,
    /// The query to send
    #[schemars(length(min = 1))]
    query: String,
    /// Maximum conversation turns
    #[schemars(range(min = 1))]
    max_turns: Option<u32>,
    /// Tools that the agent may use without asking, such as Read or Bash(git log:*)
    #[serde(default)]
    allowed_tools: Vec<String>,
    /// Whether the session stays unchanged, without this chat
    #[serde(default)]
    ephemeral: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionName {
    /// The session's name or id
    pub(super) name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The session to continue from
    pub(super) name: String,
    /// The name of the new session
    #[schemars(length(min = 1, max = 200))]
    pub(super) new_name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Poll {
    /// The stream's id
    pub(super) stream_id: String,
    /// The sequence number of the first event to return
    #[serde(default)]
    pub(super) from_seq: u64,
    /// The maximum number of events
    #[serde(default = "default_poll_limit")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: u32,
    /// How long to wait for an event, in milliseconds
    #[serde(default)]
    #[schemars(range(min = 0, max = 60_000))]
    pub(super) wait_ms: u64,
}

impl From<CreateSession> for NewSession {
    fn from(arguments: CreateSession) -> Self {
        Self {
            name: arguments.name,
            working_dir: arguments.working_dir,
            model: arguments.model,
            system_prompt: arguments.system_prompt,
            loopback_enabled: arguments.loopback_enabled,
        }
    }
}

impl From<ChatArguments> for ChatRequest {
    fn from(arguments: ChatArguments) -> Self {
        Self {
            session_name: arguments.session_name,
            query: arguments.query,
            options: ChatOptions {
                max_turns: arguments.max_turns,
                allowed_tools: arguments.allowed_tools,
                ephemeral: arguments.ephemeral,
            },
        }
    }
}

fn default_loopback_enabled() -> bool {
    true
}

fn default_poll_limit() -> u32 {
    100
}
