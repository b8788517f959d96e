//! A request of a legacy session while its own response waits for it.

use std::sync::Arc;

use super::Endpoint;
use super::sessions::HttpSession;
use crate::event_stream::EventStream;
use crate::exchange::{Exchange, Output};
use crate::session::Ticket;

/// A request that the response at hand carries on by itself, as most are answered at once.
///
/// A lost connection does not cancel a request (HTTPL-11): when this is dropped before the answer,
/// a task of its own takes the request to its end.
pub(super) struct Attended<'a> {
    endpoint: &'a Endpoint,
    session: Arc<HttpSession>,
    /// Whether what comes before the answer goes into the response; if not, it goes to the stream
    /// that belongs to no request.
    streaming: bool,
    /// `None` once it is answered, or carried on elsewhere.
    request: Option<(Exchange, Ticket)>,
}

impl<'a> Attended<'a> {
    pub(super) fn new(
        endpoint: &'a Endpoint,
        session: Arc<HttpSession>,
        streaming: bool,
        exchange: Exchange,
        ticket: Ticket,
    ) -> Self {
        Self {
            endpoint,
            session,
            streaming,
            request: Some((exchange, ticket)),
        }
    }

    /// What comes first in the response; `None` if the request was cancelled. Dropping the future
    /// loses nothing.
    pub(super) async fn first(&mut self) -> Option<Output> {
        loop {
            let (exchange, ticket) = self.request.as_mut()?;
            match exchange.next_unless(&ticket.cancel).await {
                Some(Output::Notification(message)) if !self.streaming => {
                    self.session.standalone.offer(message);
                }
                Some(Output::Question(message)) if !self.streaming => {
                    self.session.standalone.push(message);
                }
                Some(message @ (Output::Notification(_) | Output::Question(_))) => {
                    return Some(message);
                }
                answer => {
                    self.request = None;
                    return answer;
                }
            }
        }
    }

    pub(super) fn session(&self) -> &Arc<HttpSession> {
        &self.session
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// Has a task carry on, after what came `first`. Gives the stream of what it says, and the
    /// stream's number.
    pub(super) fn leave(mut self, first: Option<Output>) -> Option<(u64, Arc<EventStream>)> {
        self.detach(first)
    }

    fn detach(&mut self, first: Option<Output>) -> Option<(u64, Arc<EventStream>)> {
        let (exchange, ticket) = self.request.take()?;
        let (number, stream) = self.session.open_stream(self.endpoint.options.replay);
        let messages = Arc::clone(if self.streaming {
            &stream
        } else {
            &self.session.standalone
        });
        let carrying_on = carry_on(first, exchange, ticket, Arc::clone(&stream), messages);
        self.endpoint.edge.tracker.spawn(carrying_on);
        Some((number, stream))
    }
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.detach(None);
    }
}

/// Carries a request to its end, whoever listens.
async fn carry_on(
    first: Option<Output>,
    mut exchange: Exchange,
    ticket: Ticket,
    stream: Arc<EventStream>,
    messages: Arc<EventStream>,
) {
    let streaming = Arc::ptr_eq(&stream, &messages);
    let mut output = first;
    loop {
        let next = match output.take() {
            Some(output) => Some(output),
            None => exchange.next_unless(&ticket.cancel).await,
        };
        match next {
            Some(Output::Notification(message)) => {
                stream.set_asking(false);
                messages.offer(message);
                if streaming {
                    tokio::select! {
                        () = messages.room() => {}
                        () = ticket.cancel.cancelled() => {}
                    }
                }
            }
            Some(Output::Question(message)) => {
                stream.set_asking(true);
                messages.push(message);
            }
            Some(Output::Answer(answer)) => return stream.end(Some(answer)),
            None => return stream.end(None),
        }
    }
}
