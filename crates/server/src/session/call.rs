//! A call of a legacy session.

use std::sync::Arc;

use plexus_mcp_core::{Boxed, Event, Outcome};
use plexus_mcp_wire::Id;

use super::Session;
use super::client_requests::{self, RepeatedQuestions};
use crate::encoder::{NotificationEncoder, ResponseEncoder};
use crate::exchange::Output;
use crate::running_call::{RunningCall, Step};

/// A call of a legacy session. Its questions are sent to the client as requests, on the same stream.
pub(crate) struct SessionCall {
    session: Arc<Session>,
    encoder: Arc<ResponseEncoder>,
    id: Id,
    work: Work,
}

enum Work {
    Call {
        method: Box<str>,
        notifications: NotificationEncoder,
        running: Box<RunningCall>,
        repeated: RepeatedQuestions,
    },
    Subscribing(Boxed<Outcome>),
}

impl SessionCall {
    pub(super) fn new(
        session: Arc<Session>,
        encoder: Arc<ResponseEncoder>,
        id: Id,
        method: Box<str>,
        notifications: NotificationEncoder,
        running: RunningCall,
    ) -> Self {
        let work = Work::Call {
            method,
            notifications,
            running: Box::new(running),
            repeated: RepeatedQuestions::default(),
        };
        Self {
            session,
            encoder,
            id,
            work,
        }
    }

    pub(super) fn subscribing(
        session: Arc<Session>,
        encoder: Arc<ResponseEncoder>,
        id: Id,
        subscribing: impl Future<Output = Outcome> + Send + 'static,
    ) -> Self {
        let work = Work::Subscribing(Box::pin(subscribing));
        Self {
            session,
            encoder,
            id,
            work,
        }
    }

    pub(crate) async fn next(&mut self) -> Output {
        match &mut self.work {
            Work::Subscribing(subscribing) => {
                let outcome = subscribing.await;
                let method = plexus_mcp_protocol::method::RESOURCES_SUBSCRIBE;
                Output::Answer(self.encoder.answer(&self.id, method, outcome))
            }
            Work::Call {
                method,
                notifications,
                running,
                repeated,
            } => loop {
                let step = tokio::select! {
                    biased;
                    step = running.next() => step,
                    question = repeated.next() => return Output::Question(question),
                };
                match step {
                    Step::Event(Event::Ask(ask)) => {
                        let revision = self.encoder.revision;
                        let question = client_requests::put(&self.session, revision, ask, repeated);
                        if let Some(question) = question {
                            return Output::Question(question);
                        }
                    }
                    Step::Event(event) => {
                        let is_log = matches!(event, Event::Log(_) | Event::Recovered(_));
                        if let Some(message) = notifications.encode(&event) {
                            return if is_log {
                                Output::Notification(message)
                            } else {
                                Output::Progress(message)
                            };
                        }
                    }
                    Step::Done(outcome) => {
                        return Output::Answer(self.encoder.answer(&self.id, method, outcome));
                    }
                }
            },
        }
    }
}
