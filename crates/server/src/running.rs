//! A call on its way through a service.

use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

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
    /// Fires if this is dropped before the end.
    abandon: Option<DropGuard>,
}

impl Running {
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
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(event) = self.held.take() {
            return Poll::Ready(Step::Event(self.merged(event)));
        }
        if self.outcome.is_none() {
            // One bad handler costs one call.
            let polled = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(cx)));
            match polled.unwrap_or_else(|_panic| Poll::Ready(Err(panicked()))) {
                Poll::Ready(outcome) => self.outcome = Some(outcome),
                Poll::Pending => {
                    return match self.events.poll_recv(cx) {
                        Poll::Ready(Some(event)) => Poll::Ready(Step::Event(self.merged(event))),
                        Poll::Ready(None) | Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
        // What was said before the end comes before the end.
        if let Some(event) = self.events.try_recv() {
            return Poll::Ready(Step::Event(self.merged(event)));
        }
        self.abandon.take().map(DropGuard::disarm);
        let outcome = self.outcome.take().unwrap_or(Err(Fault::Cancelled));
        Poll::Ready(Step::Done(outcome))
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

/// What is told of a handler that panicked; the panic itself is in the log.
fn panicked() -> Fault {
    tracing::error!("a handler panicked");
    Fault::Internal("the handler failed unexpectedly".to_owned())
}
