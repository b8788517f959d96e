//! Calls of a legacy server.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use plexus_mcp::messages::CancelledParams;
use plexus_mcp::method;
use plexus_service::{Boxed, Call};
use plexus_wire::{Id, Notification, Raw, Request, RpcError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{CallFailure, Live, ask, is_interactive, late};
use crate::rpc::{InFlight, Next, Traits, Update};
use crate::stamp;

/// The most questions that one call may have open.
const MAX_QUESTIONS: usize = 32;

/// An answer on its way to the server that asked.
type Answering = Boxed<Option<(Id, Result<Raw, RpcError>)>>;

/// Carries out a call. Dropping the future cancels it at the server.
pub(super) async fn call(live: &Live, call: &Call) -> Result<Raw, CallFailure> {
    let number = live.rpc.reserve();
    // Progress keeps the clock from running out, so it is asked for wherever it helps.
    let wants_progress = call.events.wants_progress() || &*call.method == method::TOOLS_CALL;
    let params = stamp::handshake(Some(&call.params), wants_progress.then_some(number));
    let caller = Arc::as_ptr(call.peer()).addr();
    let traits = Traits::call(caller, &call.method, is_interactive(call));
    let request = live
        .rpc
        .request_as(number, &call.method, params, HeaderMap::new(), traits);
    let in_flight = live.in_time(&call.method, request).await??;
    Following {
        live,
        call,
        in_flight,
        answering: FuturesUnordered::new(),
        open: HashMap::new(),
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
    /// Open questions; dropping an entry withdraws its question from the caller.
    open: HashMap<Id, oneshot::Sender<()>>,
}

impl Following<'_> {
    async fn finish(mut self) -> Result<Raw, CallFailure> {
        let patience = self.live.patience(&self.call.method);
        let end = Instant::now() + self.live.definition.timeouts.call_total;
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
                Some(answered) = self.answering.next() => {
                    // A question that was withdrawn needs no answer.
                    if let Some((id, outcome)) = answered
                        && self.open.remove(&id).is_some()
                    {
                        self.live.rpc.respond(id, outcome).await;
                    }
                }
                () = tokio::time::sleep_until(deadline) => {
                    return Err(late(&self.call.method).into());
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
                self.open.remove(&params.request_id);
            }
            return;
        }
        self.live.relay(notification, &self.call.events).await;
    }

    async fn asked(&mut self, request: Request) {
        if self.open.len() >= MAX_QUESTIONS {
            self.live
                .rpc
                .respond(request.id, Err(ask::too_many()))
                .await;
            return;
        }
        let Some(question) = ask::question(&request.method, request.params) else {
            let outcome = Err(ask::unknown(&request.method));
            self.live.rpc.respond(request.id, outcome).await;
            return;
        };
        let (withdraw, withdrawn) = oneshot::channel();
        self.open.insert(request.id.clone(), withdraw);
        let events = self.call.events.clone();
        self.answering.push(Box::pin(async move {
            let answered = tokio::select! {
                answered = events.ask(None, question.clone()) => answered,
                _ = withdrawn => return None,
            };
            let outcome = answered.or_else(|error| ask::answer(&question, error));
            Some((request.id, outcome))
        }));
    }
}
