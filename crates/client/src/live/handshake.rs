//! Calls of a legacy server.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use plexus_mcp::messages::CancelledParams;
use plexus_mcp::{Fault, method};
use plexus_service::{Boxed, Call};
use plexus_wire::{Id, Notification, Raw, Request, RpcError};
use tokio::time::Instant;

use super::{CallFailure, Live, ask};
use crate::rpc::{InFlight, Next, Traits, Update};
use crate::stamp;

/// An answer on its way to the server that asked.
type Answering = Boxed<(Id, Result<Raw, RpcError>)>;

/// Carries out a call. Dropping the future cancels it at the server.
pub(super) async fn call(live: &Live, call: &Call) -> Result<Raw, CallFailure> {
    let number = live.rpc.reserve();
    // Progress keeps the clock from running out, so it is asked for wherever it helps.
    let wants_progress = call.events.wants_progress() || &*call.method == method::TOOLS_CALL;
    let params = stamp::handshake(Some(&call.params), wants_progress.then_some(number));
    let traits = Traits {
        may_be_asked: method::may_ask(&call.method),
        uncancellable: false,
    };
    let in_flight = live
        .rpc
        .request_as(number, &call.method, params, HeaderMap::new(), traits)
        .await?;
    Following {
        live,
        call,
        in_flight,
        answering: FuturesUnordered::new(),
        open: Vec::new(),
    }
    .finish()
    .await
}

/// A call on its way.
struct Following<'a> {
    live: &'a Live,
    call: &'a Call,
    in_flight: InFlight,
    answering: FuturesUnordered<Answering>,
    /// Questions that were not withdrawn.
    open: Vec<Id>,
}

impl Following<'_> {
    async fn finish(mut self) -> Result<Raw, CallFailure> {
        let timeouts = self.live.definition.timeouts;
        let is_tool = &*self.call.method == method::TOOLS_CALL;
        let (patience, total) = if is_tool {
            (timeouts.call, timeouts.call_total)
        } else {
            (timeouts.request, timeouts.call_total)
        };
        let end = Instant::now() + total;
        loop {
            let deadline = if self.open.is_empty() {
                (Instant::now() + patience).min(end)
            } else {
                end
            };
            tokio::select! {
                next = self.in_flight.next() => match next {
                    Next::Answer(answer) => return Ok(answer?),
                    Next::Update(Update::Notification(notification)) => self.notified(notification).await,
                    Next::Update(Update::Request(request)) => self.asked(request).await,
                },
                Some((id, outcome)) = self.answering.next() => {
                    // A question that was withdrawn needs no answer.
                    if self.open.contains(&id) {
                        self.open.retain(|open| *open != id);
                        self.live.rpc.respond(id, outcome).await;
                    }
                }
                () = tokio::time::sleep_until(deadline) => {
                    let text = format!("{} was not answered in time; it was cancelled", self.call.method);
                    return Err(Fault::Internal(text).into());
                }
            }
        }
    }

    async fn notified(&mut self, notification: Notification) {
        if &*notification.method == method::CANCELLED {
            if let Some(Ok(params)) = notification
                .params
                .as_ref()
                .map(Raw::decode::<CancelledParams>)
            {
                self.open.retain(|open| *open != params.request_id);
            }
            return;
        }
        self.live.relay(notification, &self.call.events).await;
    }

    async fn asked(&mut self, request: Request) {
        let Some(question) = ask::question(&request.method, request.params) else {
            let outcome = Err(ask::unknown(&request.method));
            self.live.rpc.respond(request.id, outcome).await;
            return;
        };
        self.open.push(request.id.clone());
        let events = self.call.events.clone();
        self.answering.push(Box::pin(async move {
            let answered = events.ask(None, question.clone()).await;
            let outcome = answered.or_else(|error| ask::answer(&question, error));
            (request.id, outcome)
        }));
    }
}
