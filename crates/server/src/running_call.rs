//! A call in progress, with its events.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use plexus_mcp_core::{Boxed, Call, Event, EventReceiver, Fault, Outcome, Service};
use tokio_util::sync::DropGuard;

/// Queued text events are merged up to this size, to send fewer messages.
const MAX_MERGED_TEXT_BYTES: usize = 64 * 1024;

/// The next thing that a running call yields.
pub(crate) enum Step {
    Event(Event),
    Done(Outcome),
}

/// A call and its events, in order. Runs only while it is polled; dropping it abandons the call.
pub(crate) struct RunningCall {
    future: Boxed<Outcome>,
    events: EventReceiver,
    /// An event that was taken from the queue and could not be merged with the one before it.
    held: Option<Event>,
    outcome: Option<Outcome>,
    /// Cancels the call if this is dropped before the call is done.
    abandon: Option<DropGuard>,
}

impl RunningCall {
    pub(crate) fn start(service: &dyn Service, call: Call, events: EventReceiver) -> Self {
        let abandon = call.cancel.clone().drop_guard();
        let future = catch_unwind(AssertUnwindSafe(|| service.call(call)));
        let future = future.unwrap_or_else(|_panic| Box::pin(ready(Err(panicked()))));
        Self {
            future,
            events,
            held: None,
            outcome: None,
            abandon: Some(abandon),
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
                // A handler that panics fails only its own call.
                outcome = AssertUnwindSafe(&mut self.future).catch_unwind() => {
                    self.outcome = Some(outcome.unwrap_or_else(|_panic| Err(panicked())));
                }
                Some(event) = self.events.recv() => return Step::Event(self.merged(event)),
            }
        }
        // Events that were queued before the end are delivered before the outcome.
        if let Some(event) = self.events.try_recv() {
            return Step::Event(self.merged(event));
        }
        self.abandon.take().map(DropGuard::disarm);
        Step::Done(self.outcome.take().unwrap_or(Err(Fault::Cancelled)))
    }

    /// Merges queued events into `event` where that loses nothing: text is appended, and a newer
    /// progress report replaces an older one (C18, PROG-06). Merged text is limited to
    /// [`MAX_MERGED_TEXT_BYTES`], which bounds the memory of a call that sends without end (C57).
    fn merged(&mut self, mut event: Event) -> Event {
        loop {
            if matches!(&event, Event::Content(text) | Event::Stderr(text) if text.len() >= MAX_MERGED_TEXT_BYTES)
            {
                return event;
            }
            let Some(next) = self.events.try_recv() else {
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

/// The error that the caller of a handler that panicked gets. The panic message is only logged.
fn panicked() -> Fault {
    tracing::error!("a handler panicked");
    Fault::Internal("the handler failed unexpectedly".to_owned())
}
