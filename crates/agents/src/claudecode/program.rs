//! The command line of the agent.

use std::ffi::OsString;
use std::path::Path;

use plexus_mcp_client::child::{Program, StartError};

use super::error::ClaudeCodeError;
use super::sessions::Session;

/// The agent program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The program: a name that is looked up in `PATH`, or a path.
    pub program: String,
    /// The value of `PATH`, for the error if the program is not found.
    pub search_path: Option<OsString>,
}

impl Settings {
    /// Uses this program as the agent.
    pub fn new(program: impl Into<String>, search_path: Option<OsString>) -> Self {
        Self {
            program: program.into(),
            search_path,
        }
    }

    /// Adds advice to the error of an agent that cannot be started.
    pub(super) fn explain(&self, reason: StartError) -> ClaudeCodeError {
        let searched = match (&reason, &self.search_path) {
            (StartError::NotInPath { .. }, Some(path)) => {
                format!("looked in {}; ", path.to_string_lossy())
            }
            _ => String::new(),
        };
        let advice = format!(
            "{searched}install Claude Code (npm install -g @anthropic-ai/claude-code), or say \
             where it is with --claude or PLEXUS_CLAUDE"
        );
        ClaudeCodeError::Start { reason, advice }
    }
}

/// Options of one chat.
#[derive(Debug, Clone, Default)]
pub(super) struct ChatOptions {
    pub(super) max_turns: Option<u32>,
    pub(super) allowed_tools: Vec<String>,
    /// Whether the session stays unchanged after the chat.
    pub(super) ephemeral: bool,
}

/// The command line of one chat. The question goes to standard input: it may be long, and other
/// users can read command lines.
pub(super) fn command(
    settings: &Settings,
    session: &Session,
    options: &ChatOptions,
    permissions: Option<(&Path, &str)>,
) -> Program {
    let mut program = Program::new(&settings.program)
        .args(["--print", "--output-format", "stream-json"])
        .args(["--include-partial-messages", "--verbose"])
        .cwd(&session.working_dir)
        // Claude Code refuses to start inside another one, which this variable marks.
        .env_remove("CLAUDECODE")
        .env_remove("CLAUDE_CODE_ENTRYPOINT");
    if let Some(model) = &session.model {
        program = program.arg(format!("--model={model}"));
    }
    if let Some(prompt) = &session.system_prompt {
        program = program.arg(format!("--system-prompt={prompt}"));
    }
    if let Some(id) = &session.agent_session_id {
        program = program.arg(format!("--resume={id}"));
        if session.forks || options.ephemeral {
            program = program.arg("--fork-session");
        }
    }
    if let Some(turns) = options.max_turns {
        program = program.arg(format!("--max-turns={turns}"));
    }
    for tool in &options.allowed_tools {
        program = program.arg(format!("--allowedTools={tool}"));
    }
    if let Some((config, tool)) = permissions {
        program = program
            .arg(format!("--mcp-config={}", config.display()))
            .arg(format!("--permission-prompt-tool={tool}"));
    }
    program
}
