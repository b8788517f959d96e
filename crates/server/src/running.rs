//! A call on its way through a service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use plexus_service::{Boxed, Call, Event, EventReceiver, Fault, Outcome, Service};
use tokio_util::sync::DropGuard;

/// How much text is joined, in bytes; less is more messages than anybody wants to read.
const JOINED: usize = 64 * 1024;

/// What a call does next.
pub(crate) enum Step {
    Event(Event),
    Done(Outcome),
}

/// A call and its events, in order. Runs only while it is polled; dropping it abandons the call.
pub(crate) struct Running {
    future: Boxed<Outcome>,
    events: EventReceiver,
    /// Taken from the queue while looking for more of its kind.
    held: Option<Event>,
    outcome: Option<Outcome>,
    _cancel: DropGuard,
}

impl Running {
    pub(crate) fn start(service: Arc<dyn Service>, call: Call, events: EventReceiver) -> Self {
        let cancel = call.cancel.clone().drop_guard();
        let method = call.method.clone();
        let work = AssertUnwindSafe(async move { service.call(call).await }).catch_unwind();
        // One bad handler costs one call.
        let future = async move {
            work.await.unwrap_or_else(|_| {
                tracing::error!(%method, "a handler panicked");
                Err(Fault::Internal(
                    "the handler failed unexpectedly".to_owned(),
                ))
            })
        };
        Self {
            future: Box::pin(future),
            events,
            held: None,
            outcome: None,
            _cancel: cancel,
        }
    }

    /// The next step. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Step {
        if let Some(event) = self.held.take() {
            return Step::Event(self.merged(event));
        }
        if self.outcome.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Step::Event(self.merged(event)),
                outcome = &mut self.future => self.outcome = Some(outcome),
            }
        }
        // What was said before the end comes before the end.
        if let Ok(event) = self.events.try_recv() {
            return Step::Event(self.merged(event));
        }
        Step::Done(self.outcome.take().unwrap_or(Err(Fault::Cancelled)))
    }

    /// Joins what waits behind `event` with it, as long as that loses nothing: a newer progress
    /// report says all that the older did, and text can be joined (C18, PROG-06). A handler that
    /// never stops talking is interrupted, so that what it says does not pile up here (C57).
    fn merged(&mut self, mut event: Event) -> Event {
        loop {
            if matches!(&event, Event::Content(text) | Event::Stderr(text) if text.len() >= JOINED)
            {
                return event;
            }
            let Ok(next) = self.events.try_recv() else {
                return event;
            };
            match (&mut event, next) {
                (Event::Content(text), Event::Content(more))
                | (Event::Stderr(text), Event::Stderr(more)) => text.push_str(&more),
                (Event::Progress(old), Event::Progress(new))
                    if old.message.is_none() || old.message == new.message =>
                {
                    *old = new;
                }
                (_, next) => {
                    self.held = Some(next);
                    return event;
                }
            }
        }
    }
}
