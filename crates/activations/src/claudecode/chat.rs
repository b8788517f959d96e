//! One chat: the agent works on one question.

use std::time::Duration;

use bytes::BytesMut;
use plexus_client::child::{Child, ChildInput, ChildOutput, ExitReport, Grace};
use plexus_service::Context;
use plexus_wire::{Limits, Line, LineDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ClaudeCode;
use super::endpoint::{Asking, Endpoint, TOOL};
use super::error::ClaudeCodeError;
use super::event::{ChatEvent, Complete, Ending, Reader};
use super::program::{ChatOptions, command};
use super::sessions::Busy;

/// How much is read at a time.
const READ: usize = 64 * 1024;
/// How long an agent may take to end after its last word.
const FAREWELL: Duration = Duration::from_secs(10);
/// How many lines of the agent's standard error are told.
const LAST_LINES: usize = 10;

/// What becomes of a chat whose session is no longer its own.
const TAKEN: &str = "the session was deleted, or another chat took it over while this one slept";

/// What is asked, and how.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) session_name: String,
    pub(super) query: String,
    pub(super) options: ChatOptions,
}

/// A chat that is about to begin; its session is busy with it.
pub(super) struct Chat {
    claude: ClaudeCode,
    busy: Busy,
    question: Question,
}

impl Chat {
    /// Makes the session busy.
    pub(super) async fn begin(
        claude: &ClaudeCode,
        question: Question,
    ) -> Result<Self, ClaudeCodeError> {
        Ok(Self {
            busy: claude.sessions.claim(&question.session_name).await?,
            claude: claude.clone(),
            question,
        })
    }

    /// The name of the session.
    pub(super) fn session_name(&self) -> &str {
        &self.busy.session.name
    }

    /// Has the agent work, telling `events` what it does. The last event is how it ended.
    /// Permissions are asked of the user of `caller` first.
    ///
    /// Dropping the future ends the agent, with all that it started.
    pub(super) async fn run(self, caller: Option<Context>, events: mpsc::Sender<ChatEvent>) {
        let ended = tokio::select! {
            ended = self.to_its_end(caller, &events) => ended,
            () = self.busy.keep() => Err(TAKEN.to_owned()),
        };
        let last = match ended {
            Ok(complete) => ChatEvent::Complete(complete),
            Err(message) => ChatEvent::Error { message },
        };
        self.busy.release().await;
        // Whoever no longer listens does not want to know.
        drop(events.send(last).await);
    }

    async fn to_its_end(
        &self,
        caller: Option<Context>,
        events: &mpsc::Sender<ChatEvent>,
    ) -> Result<Complete, String> {
        let session = &self.busy.session;
        let endpoint = if session.loopback_enabled {
            let asking = Asking {
                permissions: self.claude.permissions.clone(),
                session_id: session.id.clone(),
                caller,
                events: events.downgrade(),
                over: CancellationToken::new(),
            };
            let opened = Endpoint::open(asking).await;
            Some(opened.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let permissions = endpoint.as_ref().map(|endpoint| (endpoint.config(), TOOL));
        let settings = &self.claude.settings;
        let program = command(settings, session, &self.question.options, permissions);
        let started = Child::start(&program);
        let (child, input, output) =
            started.map_err(|error| settings.explain(error).to_string())?;

        let serving = async {
            match endpoint {
                Some(endpoint) => endpoint.run().await,
                None => std::future::pending().await,
            }
        };
        let talk = async {
            let (reader, ()) = tokio::join!(listen(output, events), tell(input, &self.question));
            (reader, farewell(child).await)
        };
        let (reader, (exit, last_words)) = tokio::select! {
            talked = talk => talked,
            () = serving => return Err("the endpoint for permissions was closed".to_owned()),
        };
        self.judge(reader, exit, &last_words).await
    }

    /// Whether it went well. What the agent itself says about that counts most.
    async fn judge(
        &self,
        reader: Reader,
        exit: ExitReport,
        last_words: &[String],
    ) -> Result<Complete, String> {
        let Some(ending) = reader.ending else {
            return Err(broken_off(&self.claude.settings.program, exit, last_words));
        };
        if !self.question.options.ephemeral {
            let went_on = self.busy.went_on_as(ending.session_id.clone()).await;
            went_on.map_err(|error| error.to_string())?;
        }
        if ending.is_error || ending.subtype.starts_with("error") {
            return Err(failure(ending));
        }
        Ok(Complete {
            session_name: self.busy.session.name.clone(),
            agent_session_id: ending.session_id,
            turns: ending.num_turns,
            cost_usd: ending.total_cost_usd,
            duration_ms: ending.duration_ms,
            skipped_lines: reader.skipped,
        })
    }
}

/// Tells what the agent says until it falls silent.
async fn listen(mut output: ChildOutput, events: &mpsc::Sender<ChatEvent>) -> Reader {
    let mut reader = Reader::default();
    let mut decoder = LineDecoder::new(Limits::default().max_bytes);
    let mut buffer = BytesMut::with_capacity(READ);
    // An output that cannot be read is as good as closed.
    while let Ok(1..) = output.read_buf(&mut buffer).await {
        while let Some(line) = decoder.next(&mut buffer) {
            hear(&mut reader, line, events).await;
        }
        buffer.reserve(READ);
    }
    if let Some(line) = decoder.finish(&mut buffer) {
        hear(&mut reader, line, events).await;
    }
    reader
}

async fn hear(reader: &mut Reader, line: Line, events: &mpsc::Sender<ChatEvent>) {
    match line {
        Line::Complete(line) => {
            for event in reader.read(&line) {
                drop(events.send(event).await);
            }
        }
        Line::TooLong { .. } => reader.skipped += 1,
    }
}

/// Gives the agent its question. One that does not want to read it says why by itself.
async fn tell(mut input: ChildInput, question: &Question) {
    if let Err(error) = input.write_all(question.query.as_bytes()).await {
        tracing::debug!(%error, "the agent does not read its question");
    }
}

/// Waits for the end of an agent that has said its last word.
async fn farewell(mut child: Child) -> (ExitReport, Vec<String>) {
    let report = match tokio::time::timeout(FAREWELL, child.exited()).await {
        Ok(report) => report,
        Err(_late) => ExitReport::Unknown,
    };
    let last_words = child.stderr_tail();
    child.stop(Grace::new(Duration::ZERO, FAREWELL)).await;
    (report, last_words)
}

fn broken_off(program: &str, exit: ExitReport, last_words: &[String]) -> String {
    let said = last_words.len().saturating_sub(LAST_LINES);
    let said = last_words.get(said..).unwrap_or_default().join("\n");
    if said.is_empty() {
        format!("{program} {exit} without a result, and did not say why")
    } else {
        format!("{program} {exit} without a result:\n{said}")
    }
}

fn failure(ending: Ending) -> String {
    let said = ending.result.filter(|said| !said.trim().is_empty());
    said.unwrap_or_else(|| match ending.subtype.as_str() {
        "error_max_turns" => "the agent took as many turns as it may, and was not done".to_owned(),
        other => format!("the agent failed: {other}"),
    })
}
