//! One chat: starts the agent with a prompt and reads its output.

use std::time::Duration;

use bytes::BytesMut;
use plexus_mcp_client::child::{Child, ChildInput, ChildOutput, ExitReport, Grace};
use plexus_mcp_core::Context;
use plexus_mcp_wire::{Limits, Line, LineDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ClaudeCode;
use super::endpoint::{LoopbackEndpoint, PERMIT_TOOL, PermissionForwarder};
use super::error::ClaudeCodeError;
use super::event::{ChatEvent, Complete, FinalMessage, OutputDecoder};
use super::program::{ChatOptions, command};
use super::sessions::SessionLock;

/// Size of the read buffer.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// How long an agent may run after its final message.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many lines of the agent's standard error an error message includes.
const MAX_STDERR_LINES: usize = 10;

/// The error of a chat that lost its session.
const SESSION_LOST: &str =
    "the session was deleted, or another chat took it over while this chat was suspended";

/// The prompt of a chat and its options.
#[derive(Debug, Clone)]
pub(super) struct ChatRequest {
    pub(super) session_name: String,
    pub(super) query: String,
    pub(super) options: ChatOptions,
}

/// A chat that has locked its session and is about to start.
pub(super) struct Chat {
    claude: ClaudeCode,
    lock: SessionLock,
    request: ChatRequest,
}

impl Chat {
    /// Locks the session, and fails if it is busy.
    pub(super) async fn begin(
        claude: &ClaudeCode,
        request: ChatRequest,
    ) -> Result<Self, ClaudeCodeError> {
        Ok(Self {
            lock: claude.sessions.claim(&request.session_name).await?,
            claude: claude.clone(),
            request,
        })
    }

    /// The name of the session.
    pub(super) fn session_name(&self) -> &str {
        &self.lock.session.name
    }

    /// Runs the agent and sends its events to `events`. The last event is the result. The user of
    /// `caller` is asked first for permissions.
    ///
    /// Dropping the future ends the agent, with all processes that it started.
    pub(super) async fn run(self, caller: Option<Context>, events: mpsc::Sender<ChatEvent>) {
        let ended = tokio::select! {
            ended = self.run_agent(caller, &events) => ended,
            () = self.lock.renew_periodically() => Err(SESSION_LOST.to_owned()),
        };
        let last = match ended {
            Ok(complete) => ChatEvent::Complete(complete),
            Err(message) => ChatEvent::Error { message },
        };
        self.lock.release().await;
        // The receiver may have been dropped.
        drop(events.send(last).await);
    }

    async fn run_agent(
        &self,
        caller: Option<Context>,
        events: &mpsc::Sender<ChatEvent>,
    ) -> Result<Complete, String> {
        let session = &self.lock.session;
        let endpoint = if session.loopback_enabled {
            let forwarder = PermissionForwarder {
                permissions: self.claude.permissions.clone(),
                session_id: session.id.clone(),
                caller,
                events: events.downgrade(),
                over: CancellationToken::new(),
            };
            let opened = LoopbackEndpoint::open(forwarder).await;
            Some(opened.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let permissions = endpoint
            .as_ref()
            .map(|endpoint| (endpoint.config(), PERMIT_TOOL));
        let settings = &self.claude.settings;
        let program = command(settings, session, &self.request.options, permissions);
        let started = Child::start(&program);
        let (child, input, output) =
            started.map_err(|error| settings.explain(error).to_string())?;

        let serving = async {
            match endpoint {
                Some(endpoint) => endpoint.run().await,
                None => std::future::pending().await,
            }
        };
        let conversation = async {
            let (reader, ()) = tokio::join!(
                read_output(output, events),
                write_prompt(input, &self.request)
            );
            (reader, wait_for_exit(child).await)
        };
        let (reader, (exit, stderr_tail)) = tokio::select! {
            ended = conversation => ended,
            () = serving => return Err("the endpoint for permissions was closed".to_owned()),
        };
        self.result(reader, exit, &stderr_tail).await
    }

    /// The result of the chat. The agent's own report takes precedence over its exit status.
    async fn result(
        &self,
        reader: OutputDecoder,
        exit: ExitReport,
        stderr_tail: &[String],
    ) -> Result<Complete, String> {
        let Some(ending) = reader.ending else {
            return Err(no_result_error(
                &self.claude.settings.program,
                exit,
                stderr_tail,
            ));
        };
        if !self.request.options.ephemeral {
            let stored = self.lock.set_agent_session(ending.session_id.clone()).await;
            stored.map_err(|error| error.to_string())?;
        }
        if ending.is_error || ending.subtype.starts_with("error") {
            return Err(failure_text(ending));
        }
        Ok(Complete {
            session_name: self.lock.session.name.clone(),
            agent_session_id: ending.session_id,
            turns: ending.num_turns,
            cost_usd: ending.total_cost_usd,
            duration_ms: ending.duration_ms,
            skipped_lines: reader.skipped,
        })
    }
}

/// Reads the agent's output until it ends.
async fn read_output(mut output: ChildOutput, events: &mpsc::Sender<ChatEvent>) -> OutputDecoder {
    let mut reader = OutputDecoder::default();
    let mut decoder = LineDecoder::new(Limits::default().max_bytes);
    let mut buffer = BytesMut::with_capacity(READ_BUFFER_BYTES);
    // An output that cannot be read counts as closed.
    while let Ok(1..) = output.read_buf(&mut buffer).await {
        while let Some(line) = decoder.next(&mut buffer) {
            handle_line(&mut reader, line, events).await;
        }
        buffer.reserve(READ_BUFFER_BYTES);
    }
    if let Some(line) = decoder.finish(&mut buffer) {
        handle_line(&mut reader, line, events).await;
    }
    reader
}

async fn handle_line(reader: &mut OutputDecoder, line: Line, events: &mpsc::Sender<ChatEvent>) {
    match line {
        Line::Complete(line) => {
            for event in reader.read(&line) {
                drop(events.send(event).await);
            }
        }
        Line::TooLong { .. } => reader.skipped += 1,
    }
}

/// Writes the prompt to the agent. If the agent does not read it, the agent's own error says why.
async fn write_prompt(mut input: ChildInput, request: &ChatRequest) {
    if let Err(error) = input.write_all(request.query.as_bytes()).await {
        tracing::debug!(%error, "the agent does not read its prompt");
    }
}

/// Waits for the agent's process to exit after its final message.
async fn wait_for_exit(mut child: Child) -> (ExitReport, Vec<String>) {
    let report = match tokio::time::timeout(EXIT_TIMEOUT, child.exited()).await {
        Ok(report) => report,
        Err(_late) => ExitReport::Unknown,
    };
    let stderr_tail = child.stderr_tail();
    child.stop(Grace::new(Duration::ZERO, EXIT_TIMEOUT)).await;
    (report, stderr_tail)
}

fn no_result_error(program: &str, exit: ExitReport, stderr_tail: &[String]) -> String {
    let said = stderr_tail.len().saturating_sub(MAX_STDERR_LINES);
    let said = stderr_tail.get(said..).unwrap_or_default().join("\n");
    if said.is_empty() {
        format!("{program} {exit} without a result and without an error message")
    } else {
        format!("{program} {exit} without a result:\n{said}")
    }
}

fn failure_text(ending: FinalMessage) -> String {
    let said = ending.result.filter(|said| !said.trim().is_empty());
    said.unwrap_or_else(|| match ending.subtype.as_str() {
        "error_max_turns" => {
            "the agent reached the maximum number of turns before it was done".to_owned()
        }
        other => format!("the agent failed: {other}"),
    })
}
