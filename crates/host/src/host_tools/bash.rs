//! `Bash`: shell commands, run by the built-in service `bash`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use plexus_mcp_agents::{CommandSettings, bash_with};
use plexus_mcp_builtins::Names;
use plexus_mcp_core::{Client, Event, LocalService};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Workspace;
use super::local_tool::LocalTool;
use crate::observer::AgentEvent;
use crate::permission::Risk;
use crate::result_text;
use crate::schema::SetupError;
use crate::tool::ToolOutput;

/// The time that a command has if the model sets none, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BashArguments {
    /// The command.
    command: String,
    /// What it does, in a few words.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "it is shown to the user with the rest of the input"
    )]
    description: Option<String>,
    /// How long it may run, in milliseconds; 120000 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout: Option<u64>,
}

pub(super) fn tool(
    workspace: &Workspace,
    env: BTreeMap<String, String>,
) -> Result<LocalTool<BashArguments>, SetupError> {
    let settings = CommandSettings {
        cwd: Some(PathBuf::from(&workspace.root)),
        env,
    };
    let builder = LocalService::builder("bash", env!("CARGO_PKG_VERSION"));
    let service = bash_with(builder, Names::Underscored, settings).build()?;
    let client = Client::new(service);
    LocalTool::new(
        "Bash",
        "Runs a shell command in the workspace. There is nothing for it to read, and what it leaves in \
         the background is ended with it.",
        Risk::High,
        workspace,
        move |context, arguments: BashArguments| {
            let timeout = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT_MS);
            let input = json!({"command": arguments.command, "timeout_ms": timeout});
            let mut call = client.call_tool("bash_execute", input).stream();
            Box::pin(async move {
                while let Some(event) = call.next().await {
                    if let Event::Content(text) | Event::Stderr(text) = event {
                        let id = Arc::clone(&context.call);
                        let event = AgentEvent::CallOutput { id, text };
                        context.observer.event(&context.agent, &event);
                    }
                }
                match call.result().await {
                    Ok(result) => result_text::output(&result),
                    Err(fault) => ToolOutput::error(fault.to_string()),
                }
            })
        },
    )
}
