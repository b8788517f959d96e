//! Events: progress, log messages, pieces of the answer and questions of a call before its outcome.

use std::sync::Arc;

use plexus_mcp_protocol::messages::{ClientCapability, LogLevel};
use plexus_mcp_protocol::{Fault, method};
use plexus_mcp_wire::{Raw, RpcError};
use tokio::sync::{mpsc, oneshot};

use crate::peer::Peer;

/// Something that a call reports while it runs. The outcome of a call is its return value and not
/// an event, so there is exactly one, and no event follows it.
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
    /// Standard error of a program that the call runs.
    Stderr(String),
    /// The call uses a tool itself.
    ToolUse(ToolUse),
    /// An error from which the call recovered (C17). An error that ends a call is its outcome.
    Recovered(String),
    /// A question to the caller. The call waits for the answer.
    Ask(Ask),
}

/// How far a call got.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the protocol's message")]
pub struct Progress {
    /// Grows with every report.
    pub progress: f64,
    /// The value of `progress` at the end, if known.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// A tool that a call uses itself.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "mirrors the native event `tool_use`"
)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// The arguments of the tool: any JSON.
    pub input: Raw,
}

/// A log message.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the protocol's message")]
pub struct Log {
    /// The severity.
    pub level: LogLevel,
    /// The part of the service that logs.
    pub logger: Option<String>,
    /// The message: any JSON.
    pub data: Raw,
}

/// A request of a server to its caller: elicitation, sampling or roots.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an edge must be able to put every question"
)]
pub enum Question {
    /// Ask the user to fill in a form or visit a URL: the parameters of `elicitation/create`, newest form.
    Elicit(Raw),
    /// Ask the client's model: the parameters of `sampling/createMessage`, newest form.
    Sample(Raw),
    /// List the roots of the client.
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

    /// The capability that the caller must declare to be asked this question.
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

/// A question to the caller, with the slot for its answer.
#[derive(Debug)]
pub struct Ask {
    /// The key of the question among the questions of this call, if the service gives it one.
    pub key: Option<String>,
    /// The question.
    pub question: Question,
    reply: oneshot::Sender<Result<Raw, AskError>>,
}

impl Ask {
    /// Gives the answer: the protocol's result object for the question's method.
    pub fn answer(self, answer: Result<Raw, AskError>) {
        // The call may have ended meanwhile. Then the answer is dropped.
        drop(self.reply.send(answer));
    }

    /// Waits until the call no longer waits for an answer.
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
    /// The question is invalid by the protocol: an error of the service.
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

/// How many events of a call may wait for the edge. When the queue is full, the call waits.
const MAX_QUEUED_EVENTS: usize = 64;

/// The receiving end of a call's events, read by the edge.
#[derive(Debug)]
pub struct EventReceiver(mpsc::Receiver<Event>);

impl EventReceiver {
    /// The next event; `None` when all senders are dropped and the queue is empty.
    ///
    /// Dropping the future loses no event.
    pub async fn recv(&mut self) -> Option<Event> {
        self.0.recv().await
    }

    /// The next event, if one is queued.
    pub fn try_recv(&mut self) -> Option<Event> {
        self.0.try_recv().ok()
    }
}

/// The sending end of a call's events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventSender {
    queue: mpsc::Sender<Event>,
    peer: Arc<Peer>,
    progress: bool,
    log_level: Option<LogLevel>,
    /// The prefix of log messages: the name of the hub member that logs.
    source: Option<Arc<str>>,
    /// The span of the call, for log records about its events.
    span: tracing::Span,
}

impl EventSender {
    /// A channel for one call of `peer`. `progress` is whether the caller asked for progress, and
    /// `log_level` the least severe level of the log messages that it asked for, if any.
    pub fn channel(
        peer: Arc<Peer>,
        progress: bool,
        log_level: Option<LogLevel>,
    ) -> (Self, EventReceiver) {
        let (queue, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        (
            Self {
                queue,
                peer,
                progress,
                log_level,
                source: None,
                span: tracing::Span::none(),
            },
            EventReceiver(events),
        )
    }

    /// The same channel for the hub member `source`, whose name is put before the logger's name in
    /// its log messages.
    #[must_use]
    pub fn naming(mut self, source: &Arc<str>) -> Self {
        self.source = Some(match self.source {
            Some(outer) => format!("{outer}/{source}").into(),
            None => Arc::clone(source),
        });
        self
    }

    /// The same channel, with `span` for the log records about its events.
    #[must_use]
    pub(crate) fn in_span(mut self, span: tracing::Span) -> Self {
        self.span = span;
        self
    }

    /// The caller.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether the caller asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.progress
    }

    /// The least severe level of the log messages that the caller asked for, if any.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Whether the caller asked for log messages of `level`.
    pub fn wants_log(&self, level: LogLevel) -> bool {
        self.log_level.is_some_and(|wanted| level >= wanted)
    }

    /// Reports progress, if the caller asked for it.
    pub async fn progress(&self, progress: Progress) {
        if self.progress {
            self.send(Event::Progress(progress)).await;
        }
    }

    /// Sends a log message, if the caller asked for its level.
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

    /// Streams a piece of the answer before the outcome, if the caller asked for progress.
    pub async fn content(&self, text: String) {
        if self.progress {
            self.send(Event::Content(text)).await;
        }
    }

    /// Sends an event that is no part of the answer, if the caller asked for progress or logs.
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
        let method = question.method();
        tracing::debug!(parent: &self.span, method, "asks the caller");
        let (reply, answer) = oneshot::channel();
        self.send(Event::Ask(Ask {
            key,
            question,
            reply,
        }))
        .await;
        let answer = answer.await.unwrap_or(Err(AskError::Gone));
        match &answer {
            Ok(_) => tracing::debug!(parent: &self.span, method, "the caller answered"),
            Err(error) => tracing::debug!(parent: &self.span, method, %error, "no answer"),
        }
        answer
    }

    /// Waits for room in the queue (C57). The event is dropped if the receiver is gone; the call
    /// is cancelled in that case.
    async fn send(&self, event: Event) {
        drop(self.queue.send(event).await);
    }
}

#[cfg(test)]
mod tests;
