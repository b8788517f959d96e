//! One call, with all that its server says and asks meanwhile.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use plexus_hub::Hub;
use plexus_service::{
    Ask, Call, Event, EventReceiver, EventSender, Log, LogLevel, Object, Outcome, Service,
};
use tokio_util::sync::CancellationToken;

use crate::asking::Asking;
use crate::live::{FRAME, Live};
use crate::output::{harmless, print, printable};
use crate::session::Session;

/// A call that a person waits for.
pub(crate) struct Conversation {
    live: Live,
    asking: Asking,
    /// Pieces of the answer are printed when they come.
    shows_pieces: bool,
    /// What was printed of the answer.
    printed: String,
}

/// How a call ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// What was printed of the answer already.
    pub(crate) printed: String,
}

impl Conversation {
    /// A conversation about `what`. Pieces of the answer are only shown to people, since the whole
    /// comes at the end.
    pub(crate) fn about(what: &str, json: bool) -> Self {
        Self {
            live: Live::new(what),
            asking: Asking::new(),
            shows_pieces: !json && io::stdout().is_terminal(),
            printed: String::new(),
        }
    }

    /// Calls, and waits for the end. Dropping the future cancels the call.
    pub(crate) async fn call(
        mut self,
        session: &Session,
        method: &str,
        params: Object,
        log_level: Option<LogLevel>,
    ) -> Ended {
        let (events, mut said) = EventSender::channel(Arc::clone(&session.peer), true, log_level);
        let call = Call::new(method, params, events, CancellationToken::new());
        let outcome = self.converse(&session.hub, call, &mut said).await;
        self.live.clear();
        Ended {
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
                () = tokio::time::sleep(FRAME) => self.live.draw(),
            }
        };
        // What was said before the end is shown before it.
        while let Some(event) = said.try_recv() {
            self.heed(event);
        }
        outcome
    }

    /// Shows what was said, unless it is a question.
    fn heed(&mut self, event: Event) -> Option<Ask> {
        match event {
            Event::Progress(progress) => self.live.progress(progress),
            Event::Log(log) => self.live.note(&log_line(&log)),
            Event::Content(piece) => self.piece(&piece),
            Event::Stderr(text) => self.live.note(&printable(text.trim_end())),
            Event::ToolUse(tool) => {
                let using = format!("Using tool: {}", tool.name);
                self.live.note(&printable(&using));
            }
            Event::Recovered(reason) => self.live.note(&printable(&reason)),
            Event::Ask(ask) => return Some(ask),
        }
        None
    }

    async fn ask(&mut self, mut ask: Ask) {
        self.live.clear();
        let question = ask.question.clone();
        let answered = tokio::select! {
            answer = self.asking.answer(&question) => Some(answer),
            () = ask.withdrawn() => None,
        };
        match answered {
            Some(answer) => ask.answer(answer),
            None => self.live.note("the question was withdrawn"),
        }
    }

    fn piece(&mut self, piece: &str) {
        if self.shows_pieces && !piece.is_empty() {
            self.live.yield_to_output(piece.ends_with('\n'));
            // If nobody reads it, the end will find out.
            drop(print(&harmless(piece)));
            self.printed.push_str(piece);
        }
    }
}

fn log_line(log: &Log) -> String {
    let text = log.data.decode::<String>();
    let text = text.unwrap_or_else(|_| log.data.as_str().to_owned());
    let logger = log.logger.as_deref().map(|logger| format!(" {logger}:"));
    printable(&format!(
        "[{}]{} {text}",
        log.level,
        logger.unwrap_or_default()
    ))
}
