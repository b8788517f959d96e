//! One request of a [`Client`], awaited or streamed.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::messages::{CompleteResult, CompletionContext, LogLevel};
use plexus_mcp_wire::{Object, Raw};
use tokio_util::sync::CancellationToken;

use super::{Client, handler, unencodable};
use crate::call::{Boxed, Call, Outcome};
use crate::event::{Ask, Event, EventReceiver, EventSender};

/// Decodes the result object of a request.
type Decode<T> = fn(&Raw) -> Result<T, Fault>;

/// A request that is sent when it is awaited or [streamed](Request::stream). Dropping the future
/// cancels it at the server.
#[must_use = "a request is sent when it is awaited"]
pub struct Request<T> {
    client: Client,
    method: &'static str,
    params: Result<Object, Fault>,
    log_level: Option<LogLevel>,
    decode: Decode<T>,
}

impl<T> Request<T> {
    pub(super) fn new(
        client: Client,
        method: &'static str,
        params: Result<Object, Fault>,
        decode: Decode<T>,
    ) -> Self {
        Self {
            client,
            method,
            params,
            log_level: None,
            decode,
        }
    }

    /// The same request, during which the server sends its log messages from `level` on.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets `_meta` of the request, such as a W3C `traceparent`.
    pub fn meta(mut self, meta: Raw) -> Self {
        if let Ok(params) = &mut self.params {
            params.set("_meta", meta);
        }
        self
    }

    /// Sends the request. Progress, log messages and pieces of the answer come as they are sent.
    pub fn stream(self) -> CallStream<T> {
        self.send(true)
    }

    fn send(self, wants_progress: bool) -> CallStream<T> {
        let peer = Arc::clone(&self.client.peer);
        let (sender, events) = EventSender::channel(peer, wants_progress, self.log_level);
        let running = match self.params {
            Ok(params) => {
                let call = Call::new(self.method, params, sender, CancellationToken::new());
                self.client.service.call(call)
            }
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        };
        CallStream {
            client: self.client,
            running,
            outcome: None,
            events,
            answers: FuturesUnordered::new(),
            decode: self.decode,
        }
    }
}

impl Request<CompleteResult> {
    /// Sets the context of a completion: the other arguments, which are already known.
    pub fn context(mut self, context: &CompletionContext) -> Self {
        self.params = self.params.and_then(|mut params| {
            let context = Raw::encode(context).map_err(|error| unencodable(&error))?;
            params.set("context", context);
            Ok(params)
        });
        self
    }
}

impl<T: 'static> IntoFuture for Request<T> {
    type Output = Result<T, Fault>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let call = self.send(false);
        Box::pin(call.result())
    }
}

/// A call in flight: its events first, then its result. Dropping it cancels the call at the server.
#[must_use = "a call goes on only while its events or its result are awaited"]
pub struct CallStream<T> {
    client: Client,
    running: Boxed<Outcome>,
    /// Set when `running` is over.
    outcome: Option<Outcome>,
    events: EventReceiver,
    /// Questions that the handler is answering.
    answers: FuturesUnordered<Boxed<()>>,
    decode: Decode<T>,
}

impl<T> CallStream<T> {
    /// The next event, or `None` when the call has ended. Questions are not among the events: the
    /// client's handler answers them.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let event = if self.outcome.is_some() {
                self.events.try_recv()?
            } else {
                tokio::select! {
                    biased;
                    Some(event) = self.events.recv() => event,
                    Some(()) = self.answers.next() => continue,
                    outcome = &mut self.running => {
                        self.outcome = Some(outcome);
                        continue;
                    }
                }
            };
            match event {
                Event::Ask(ask) => self.answer(ask),
                event => return Some(event),
            }
        }
    }

    /// The result, once the call has ended. Events that come before are passed over.
    ///
    /// # Errors
    /// The request failed, or its result is malformed.
    pub async fn result(self) -> Result<T, Fault> {
        let decode = self.decode;
        decode(&self.raw_result().await?)
    }

    /// The result object as the server gave it.
    ///
    /// # Errors
    /// The request failed.
    pub async fn raw_result(mut self) -> Outcome {
        while self.next().await.is_some() {}
        self.outcome.unwrap_or(Err(Fault::Cancelled))
    }

    fn answer(&mut self, mut ask: Ask) {
        let handler = Arc::clone(&self.client.handler);
        self.answers.push(Box::pin(async move {
            let question = ask.question.clone();
            let answered = tokio::select! {
                answer = handler::answer(&*handler, &question) => Some(answer),
                () = ask.withdrawn() => None,
            };
            if let Some(answer) = answered {
                ask.answer(answer);
            }
        }));
    }
}

impl<T> std::fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for CallStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallStream")
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
