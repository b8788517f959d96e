//! What a call yields before it is done.

mod queue;

use std::sync::Arc;

use plexus_mcp::messages::{ClientCapability, LogLevel};
use plexus_mcp::{Fault, method};
use plexus_wire::{Raw, RpcError};
use tokio::sync::oneshot;

pub use queue::EventReceiver;

use crate::peer::Peer;

/// Something a call says on its way. The end of a call is no event but its return value, so that
/// there is exactly one, and it is the last.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an edge must render every kind of event"
)]
pub enum Event {
    /// How far the call got.
    Progress(Progress),
    /// A log message, at or above the level that was asked for.
    Log(Log),
    /// A piece of the answer, ahead of the whole.
    Content(String),
    /// What a program that the call runs says beside its answer.
    Stderr(String),
    /// The call uses a tool itself.
    ToolUse(ToolUse),
    /// Something failed, and the call goes on (C17). What ends a call is its outcome.
    Recovered(String),
    /// A question to the caller, which the call waits for.
    Ask(Ask),
}

/// How far a call got.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the protocol's message")]
pub struct Progress {
    /// Grows with every report.
    pub progress: f64,
    /// Where it ends, if known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// A tool that a call uses itself.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "what the founding document has")]
pub struct ToolUse {
    /// Which tool.
    pub name: String,
    /// What it is given: any JSON.
    pub input: Raw,
}

/// A log message.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the protocol's message")]
pub struct Log {
    /// How grave it is.
    pub level: LogLevel,
    /// Which part of the service speaks.
    pub logger: Option<String>,
    /// What it says: any JSON.
    pub data: Raw,
}

/// What can be asked of a caller.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an edge must be able to put every question"
)]
pub enum Question {
    /// Have the user fill in a form or visit a URL; `elicitation/create` parameters, newest form.
    Elicit(Raw),
    /// Have the client's model answer; `sampling/createMessage` parameters, newest form.
    Sample(Raw),
    /// Name the roots that may be worked on.
    Roots,
}

impl Question {
    /// The protocol's method for this question.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => method::ELICIT,
            Self::Sample(_) => method::SAMPLE,
            Self::Roots => method::ROOTS_LIST,
        }
    }

    /// The method's parameters.
    pub fn params(&self) -> Option<&Raw> {
        match self {
            Self::Elicit(params) | Self::Sample(params) => Some(params),
            Self::Roots => None,
        }
    }

    /// What the caller must be able to do to be asked this.
    pub fn needs(&self) -> ClientCapability {
        #[derive(serde::Deserialize)]
        struct Mode<'a> {
            #[serde(borrow)]
            mode: Option<std::borrow::Cow<'a, str>>,
        }
        #[derive(serde::Deserialize)]
        struct Tools {
            tools: Option<serde::de::IgnoredAny>,
        }
        match self {
            Self::Roots => ClientCapability::Roots,
            Self::Elicit(params) => match params.decode::<Mode<'_>>() {
                Ok(Mode { mode: Some(mode) }) if mode == "url" => ClientCapability::ElicitationUrl,
                _ => ClientCapability::ElicitationForm,
            },
            Self::Sample(params) => match params.decode::<Tools>() {
                Ok(Tools { tools: Some(_) }) => ClientCapability::SamplingTools,
                _ => ClientCapability::Sampling,
            },
        }
    }
}

/// A question on its way to the caller, with the slot for its answer.
#[derive(Debug)]
pub struct Ask {
    /// What the question is called among the questions of this call, if the service cares.
    pub key: Option<String>,
    /// The question.
    pub question: Question,
    reply: oneshot::Sender<Result<Raw, AskError>>,
}

impl Ask {
    /// Gives the answer: the protocol's result object for the question's method.
    pub fn answer(self, answer: Result<Raw, AskError>) {
        // The call may have ended meanwhile; then nobody waits for the answer.
        drop(self.reply.send(answer));
    }

    /// Waits until the call no longer wants an answer.
    pub async fn withdrawn(&mut self) {
        self.reply.closed().await;
    }

    /// Whether the call still waits for an answer.
    pub fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }
}

/// Why a question was not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The caller cannot be asked this.
    #[error("the client cannot be asked: it did not declare {}", .0.as_str())]
    Unsupported(ClientCapability),
    /// The caller answered with an error.
    #[error("the client refused: {}", .0.message)]
    Refused(RpcError),
    /// The answer is not of the form that the protocol asks for.
    #[error("the client's answer is malformed: {0}")]
    Malformed(String),
    /// The question is not one that the protocol can put: the service is to blame.
    #[error("the question cannot be put: {0}")]
    Unaskable(String),
    /// The caller went away, or took too long.
    #[error("the client went away before it answered")]
    Gone,
}

impl From<AskError> for Fault {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unsupported(capability) => Self::MissingCapability(capability),
            AskError::Gone => Self::Cancelled,
            refused => Self::Internal(refused.to_string()),
        }
    }
}

/// Where a call puts its events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventSender {
    queue: queue::Sender,
    peer: Arc<Peer>,
    progress: bool,
    log_level: Option<LogLevel>,
    /// Who speaks, where many do.
    source: Option<Arc<str>>,
}

impl EventSender {
    /// A channel for one call of `peer`, which wants progress or not, and log messages from
    /// `log_level` on, if any.
    pub fn channel(
        peer: Arc<Peer>,
        progress: bool,
        log_level: Option<LogLevel>,
    ) -> (Self, EventReceiver) {
        let (queue, events) = queue::channel();
        (
            Self {
                queue,
                peer,
                progress,
                log_level,
                source: None,
            },
            events,
        )
    }

    /// The same channel for one of many who share it: its log messages begin with its name.
    #[must_use]
    pub fn naming(mut self, source: &Arc<str>) -> Self {
        self.source = Some(match self.source {
            Some(outer) => format!("{outer}/{source}").into(),
            None => Arc::clone(source),
        });
        self
    }

    /// Who is calling.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether anybody wants to know how far the call got.
    pub fn wants_progress(&self) -> bool {
        self.progress
    }

    /// From which level on log messages are wanted, if any.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Whether a log message of `level` would reach anybody.
    pub fn wants_log(&self, level: LogLevel) -> bool {
        self.log_level.is_some_and(|wanted| level >= wanted)
    }

    /// Reports progress, if anybody wants to know.
    pub async fn progress(&self, progress: Progress) {
        if self.progress {
            self.send(Event::Progress(progress)).await;
        }
    }

    /// Logs, if the level is wanted.
    pub async fn log(&self, mut log: Log) {
        if self.wants_log(log.level) {
            if let Some(source) = &self.source {
                log.logger = Some(match log.logger {
                    Some(logger) => format!("{source}/{logger}"),
                    None => source.to_string(),
                });
            }
            self.send(Event::Log(log)).await;
        }
    }

    /// Hands out a piece of the answer ahead of the whole, if anybody wants it.
    pub async fn content(&self, text: String) {
        if self.progress {
            self.send(Event::Content(text)).await;
        }
    }

    /// Tells what happens beside the answer, if anybody listens to the call while it runs.
    pub(crate) async fn aside(&self, event: Event) {
        if self.progress || self.log_level.is_some() {
            self.send(event).await;
        }
    }

    /// Puts a question to the caller and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. A caller that did not declare the needed capability is not asked.
    pub async fn ask(&self, key: Option<String>, question: Question) -> Result<Raw, AskError> {
        let capability = question.needs();
        if !self.peer.supports(capability) {
            return Err(AskError::Unsupported(capability));
        }
        let (reply, answer) = oneshot::channel();
        self.send(Event::Ask(Ask {
            key,
            question,
            reply,
        }))
        .await;
        answer.await.unwrap_or(Err(AskError::Gone))
    }

    /// An edge that is gone takes no events; the call finds out by its cancellation.
    async fn send(&self, event: Event) {
        self.queue.send(event).await;
    }
}
