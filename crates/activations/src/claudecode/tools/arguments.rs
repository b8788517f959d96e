//! What the tools are given. Models read the comments.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::claudecode::chat::Question;
use crate::claudecode::program::ChatOptions;
use crate::claudecode::sessions::NewSession;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// A name that no other session has
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// The folder that the agent works in
    #[schemars(length(min = 1))]
    working_dir: String,
    /// The model, such as opus, sonnet or haiku; if left out, the agent's choice
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// What the agent is told beforehand, instead of what it always is
    system_prompt: Option<String>,
    /// Whether the agent can ask for permissions; what it may not do is denied otherwise
    #[serde(default = "yes")]
    loopback_enabled: bool,
}

/// S003-17, C13.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
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
    /// Whether the session forgets this chat
    #[serde(default)]
    ephemeral: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    /// The session's name or id
    pub(super) name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The session to go on from
    pub(super) name: String,
    /// The name of the new one
    #[schemars(length(min = 1, max = 200))]
    pub(super) new_name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Poll {
    /// The stream
    pub(super) stream_id: String,
    /// The number of the first event that is wanted
    #[serde(default)]
    pub(super) from_seq: u64,
    /// At most so many events
    #[serde(default = "a_hundred")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: u32,
    /// For how many milliseconds to wait if there is nothing yet
    #[serde(default)]
    #[schemars(range(min = 0, max = 60_000))]
    pub(super) wait_ms: u64,
}

impl From<Create> for NewSession {
    fn from(arguments: Create) -> Self {
        Self {
            name: arguments.name,
            working_dir: arguments.working_dir,
            model: arguments.model,
            system_prompt: arguments.system_prompt,
            loopback_enabled: arguments.loopback_enabled,
        }
    }
}

impl From<Asked> for Question {
    fn from(arguments: Asked) -> Self {
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

fn yes() -> bool {
    true
}

fn a_hundred() -> u32 {
    100
}
