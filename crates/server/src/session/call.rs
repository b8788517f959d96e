//! A call of a legacy session.

use std::borrow::Cow;
use std::sync::Arc;

use plexus_service::{Boxed, Event, Outcome};
use plexus_wire::Id;

use super::{Session, asks};
use crate::exchange::Output;
use crate::render::{Narrator, Voice};
use crate::running::{Running, Step};

/// A call of a legacy session: its questions go to the client as requests, on the same channel.
pub(crate) struct SessionCall {
    session: Arc<Session>,
    voice: Arc<Voice>,
    id: Id,
    work: Work,
}

enum Work {
    Running {
        method: Cow<'static, str>,
        narrator: Narrator,
        running: Box<Running>,
    },
    Subscribing(Boxed<Outcome>),
}

impl SessionCall {
    pub(super) fn new(
        session: Arc<Session>,
        voice: Arc<Voice>,
        id: Id,
        method: Cow<'static, str>,
        narrator: Narrator,
        running: Running,
    ) -> Self {
        let work = Work::Running {
            method,
            narrator,
            running: Box::new(running),
        };
        Self {
            session,
            voice,
            id,
            work,
        }
    }

    pub(super) fn subscribing(
        session: Arc<Session>,
        voice: Arc<Voice>,
        id: Id,
        subscribing: impl Future<Output = Outcome> + Send + 'static,
    ) -> Self {
        let work = Work::Subscribing(Box::pin(subscribing));
        Self {
            session,
            voice,
            id,
            work,
        }
    }

    pub(crate) async fn next(&mut self) -> Output {
        match &mut self.work {
            Work::Subscribing(subscribing) => {
                let outcome = subscribing.await;
                let method = plexus_mcp::method::RESOURCES_SUBSCRIBE;
                Output::Answer(self.voice.answer(&self.id, method, outcome))
            }
            Work::Running {
                method,
                narrator,
                running,
            } => loop {
                let step = running.next().await;
                match step {
                    Step::Event(Event::Ask(ask)) => {
                        let revision = self.voice.revision;
                        if let Some(message) = asks::put(&self.session, revision, ask) {
                            return Output::Question(message);
                        }
                    }
                    Step::Event(event) => {
                        if let Some(message) = narrator.tell(&event) {
                            return Output::Notification(message);
                        }
                    }
                    Step::Done(outcome) => {
                        return Output::Answer(self.voice.answer(&self.id, method, outcome));
                    }
                }
            },
        }
    }
}
