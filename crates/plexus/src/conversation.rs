//! One call from the command line, with progress, log messages and questions of the server.

use std::sync::Arc;

use plexus_mcp_core::{
    Ask, Call, Event, EventReceiver, EventSender, Log, LogLevel, Object, Outcome, Service,
};
use plexus_mcp_hub::Hub;
use tokio_util::sync::CancellationToken;

use crate::live::{FRAME_INTERVAL, StatusLine};
use crate::output::{self, print};
use crate::printable::one_line;
use crate::session::Session;
use crate::terminal_prompts::TerminalPrompts;

/// A call in the foreground.
pub(crate) struct Conversation {
    status_line: StatusLine,
    prompts: TerminalPrompts,
    /// Parts of the result are printed as they arrive.
    shows_pieces: bool,
    /// The part of the result that was printed.
    printed: String,
}

/// The end of a call.
pub(crate) struct CallEnd {
    pub(crate) outcome: Outcome,
    /// The part of the result that was already printed.
    pub(crate) printed: String,
}

impl Conversation {
    /// A conversation about `what`. Parts of the result are only printed on a terminal, since the
    /// whole result is printed at the end.
    pub(crate) fn about(what: &str, json: bool) -> Self {
        Self {
            status_line: StatusLine::new(what),
            prompts: TerminalPrompts::new(),
            shows_pieces: !json && output::is_terminal(),
            printed: String::new(),
        }
    }

    /// Sends the call and waits for its outcome. Dropping the future cancels the call.
    pub(crate) async fn call(
        mut self,
        session: &Session,
        method: &str,
        params: Object,
        log_level: Option<LogLevel>,
    ) -> CallEnd {
        let (events, mut said) = EventSender::channel(Arc::clone(&session.peer), true, log_level);
        let call = Call::new(method, params, events, CancellationToken::new());
        let outcome = self.converse(&session.hub, call, &mut said).await;
        self.status_line.clear();
        CallEnd {
            outcome,
            printed: self.printed,
        }
    }

    async fn converse(&mut self, hub: &Hub, call: Call, said: &mut EventReceiver) -> Outcome {
        let mut answer = hub.call(call);
        let outcome = loop {
            tokio::select! {
                Some(event) = said.recv() => if let Some(ask) = self.heed(event) {
                    tokio::select! {
                        outcome = &mut answer => break outcome,
                        () = self.ask(ask) => {}
                    }
                },
                outcome = &mut answer => break outcome,
                () = tokio::time::sleep(FRAME_INTERVAL) => self.status_line.draw(),
            }
        };
        // Events that arrived before the end are shown before it.
        while let Some(event) = said.try_recv() {
            self.heed(event);
        }
        outcome
    }

    /// Shows an event, or returns it if it is a question.
    fn heed(&mut self, event: Event) -> Option<Ask> {
        match event {
            Event::Progress(progress) => self.status_line.progress(progress),
            Event::Log(log) => self.status_line.note(&log_line(&log)),
            Event::Content(piece) => self.piece(&piece),
            Event::Stderr(text) => self.status_line.note(&one_line(text.trim_end())),
            Event::ToolUse(tool) => {
                let using = format!("Using tool: {}", tool.name);
                self.status_line.note(&one_line(&using));
            }
            Event::Recovered(reason) => self.status_line.note(&one_line(&reason)),
            Event::Ask(ask) => return Some(ask),
        }
        None
    }

    async fn ask(&mut self, mut ask: Ask) {
        self.status_line.clear();
        let question = ask.question.clone();
        let answered = tokio::select! {
            answer = self.prompts.answer(&question) => Some(answer),
            () = ask.withdrawn() => None,
        };
        match answered {
            Some(answer) => ask.answer(answer),
            None => self.status_line.note("the question was withdrawn"),
        }
    }

    fn piece(&mut self, piece: &str) {
        if self.shows_pieces && !piece.is_empty() {
            self.status_line.yield_to_output(piece.ends_with('\n'));
            // A closed output is noticed at the end.
            drop(print(piece));
            self.printed.push_str(piece);
        }
    }
}

fn log_line(log: &Log) -> String {
    let text = log.data.decode::<String>();
    let text = text.unwrap_or_else(|_| log.data.as_str().to_owned());
    let logger = log.logger.as_deref().map(|logger| format!(" {logger}:"));
    one_line(&format!(
        "[{}]{} {text}",
        log.level,
        logger.unwrap_or_default()
    ))
}
