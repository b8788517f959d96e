//! The tool `bash.execute`, which runs shell commands. The output of a command is streamed.
//!
//! A caller of this tool can do everything that the user of the server process can do. The program
//! that builds the service must offer it only to callers that are allowed to do so.

mod command;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plexus_mcp_client::child::ExitReport;
use plexus_mcp_core::{
    Builder, CallToolResult, ContentBlock, Context, Fault, Raw, ToolAnnotations, ToolError,
    ToolResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::task::TaskTracker;

use self::command::{Command, End, Ended};
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::support::to_json;

/// The maximum size of each output stream in the result, in bytes. The middle of a longer stream is
/// left out. A caller that asked for progress notifications got all of it (C57).
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// Where and how commands are run.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct CommandSettings {
    /// The working directory of calls that name none; `None` for that of this process.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to the environment of this process.
    pub env: BTreeMap<String, String>,
}

/// Adds the tool `bash.execute`.
pub fn bash(builder: Builder, names: Names) -> Builder {
    bash_with(builder, names, CommandSettings::default())
}

/// The same, with these settings.
pub fn bash_with(builder: Builder, names: Names, settings: CommandSettings) -> Builder {
    let mut tool = names
        .tool("bash", "execute")
        .title("Run a shell command")
        .description(
            "Execute a bash command. Its output is streamed; the result has what it wrote to \
             standard output and standard error, of a long output the beginning and the end. \
             There is nothing for it to read, and what it leaves in the background is ended with \
             it",
        )
        .annotations(
            ToolAnnotations::new()
                .read_only(false)
                .destructive(true)
                .idempotent(false)
                .open_world(true),
        );
    let output = Raw::encode(&schemars::schema_for!(Output));
    if let Ok(schema) = output {
        tool = tool.output_schema(schema);
    }
    let ending = TaskTracker::new();
    builder.tool(tool, move |arguments, context| {
        execute(arguments, context, settings.clone(), ending.clone())
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Execute {
    /// The command to execute
    #[schemars(length(min = 1))]
    command: String,
    /// Working directory; if left out, the server's
    cwd: Option<PathBuf>,
    /// Timeout in milliseconds
    #[serde(default = "ten_minutes")]
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: u64,
}

/// The result of a command (C15).
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Standard output
    stdout: String,
    /// Standard error
    stderr: String,
    /// Exit code; null if a signal ended the command
    exit_code: Option<i32>,
}

async fn execute(
    arguments: Execute,
    context: Context,
    settings: CommandSettings,
    ending: TaskTracker,
) -> ToolResult {
    let Execute {
        command,
        cwd,
        timeout_ms,
    } = arguments;
    let limit = Duration::from_millis(timeout_ms);
    let settings = CommandSettings {
        cwd: cwd.or(settings.cwd),
        env: settings.env,
    };
    let command = Command::start(command, settings, ending).map_err(|error| {
        let reason = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        ToolError::Failed(reason)
    })?;
    let ended = command.run(&context, limit).await;
    result(ended, limit)
}

/// C15, C16: standard output, then standard error, then the reason of a failure.
fn result(ended: Ended, limit: Duration) -> ToolResult {
    let (exit_code, failure) = match ended.end {
        End::Exited(ExitReport::Code(0)) => (Some(0), None),
        End::Exited(ExitReport::Code(code)) => (Some(code), Some(format!("[exit code: {code}]"))),
        End::Exited(report) => (None, Some(format!("[the command {report}]"))),
        End::TimedOut => {
            let limit = limit.as_millis();
            (None, Some(format!("[timed out after {limit} ms]")))
        }
    };
    let is_error = failure.is_some();
    let texts = [ended.stdout.clone(), ended.stderr.clone()];
    let content = texts.into_iter().chain(failure);
    let content = content.filter(|text| !text.is_empty());
    let mut content: Vec<_> = content.map(ContentBlock::text).collect();
    let output = Output {
        stdout: ended.stdout,
        stderr: ended.stderr,
        exit_code,
    };
    if content.is_empty() {
        // S003-22: for a command without output, the text is its exit status.
        let output = serde_json::to_string_pretty(&output);
        let output = output.map_err(|error| Fault::Internal(error.to_string()))?;
        content.push(ContentBlock::text(output));
    }
    let mut result = CallToolResult::new(content);
    result.structured_content = Some(to_json(&output)?);
    result.is_error = is_error;
    Ok(result)
}

fn ten_minutes() -> u64 {
    600_000
}
