//! In-flight requests: the messages of the server for one request go through a channel to its caller.

use std::sync::Arc;

use plexus_mcp_core::Boxed;
use plexus_mcp_wire::{Raw, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::{Inner, RpcFailure, Traits, Update};
use crate::link::{Link, LinkError, Number};

/// Notifications and questions that wait for the caller of a request. Further ones are dropped.
const MAX_QUEUED_UPDATES: usize = 256;

/// Delivers what the server sends for one request.
pub(super) struct ResponseSender {
    updates: mpsc::Sender<Update>,
    answer: oneshot::Sender<Result<Raw, RpcFailure>>,
}

/// The caller's end of a [`ResponseSender`].
pub(super) struct ResponseReceiver {
    /// Closed after the answer was sent.
    updates: mpsc::Receiver<Update>,
    answer: oneshot::Receiver<Result<Raw, RpcFailure>>,
}

pub(super) fn response_channel() -> (ResponseSender, ResponseReceiver) {
    let (updates_sender, updates) = mpsc::channel(MAX_QUEUED_UPDATES);
    let (answer_sender, answer) = oneshot::channel();
    let sender = ResponseSender {
        updates: updates_sender,
        answer: answer_sender,
    };
    (sender, ResponseReceiver { updates, answer })
}

impl ResponseSender {
    /// Queues an update, or gives it back if the queue is full.
    pub(super) fn update(&self, update: Update) -> Result<(), Update> {
        let sent = self.updates.try_send(update);
        sent.map_err(mpsc::error::TrySendError::into_inner)
    }

    /// Sends the answer. The caller receives it after all queued updates.
    pub(super) fn answer(self, answer: Result<Raw, RpcFailure>) {
        // The caller may have given up.
        drop(self.answer.send(answer));
    }
}

impl ResponseReceiver {
    /// The next update, or the answer after all updates. Cancel-safe.
    async fn next(&mut self) -> Next {
        if let Some(update) = self.updates.recv().await {
            return Next::Update(update);
        }
        // A receiver that has given its answer must not be polled again.
        let answer = if self.answer.is_terminated() {
            None
        } else {
            (&mut self.answer).await.ok()
        };
        Next::Answer(answer.unwrap_or_else(|| {
            let reason = "the connection has ended".to_owned();
            Err(LinkError::Closed(reason).into())
        }))
    }

    /// The next queued question. Notifications before it are dropped.
    fn queued_question(&mut self) -> Option<Request> {
        loop {
            if let Update::Request(request) = self.updates.try_recv().ok()? {
                return Some(request);
            }
        }
    }
}

/// A request that was sent. Dropping it before its answer cancels it.
pub(crate) struct InFlight {
    number: Number,
    traits: Traits,
    received: ResponseReceiver,
    transfer: Transfer,
    answered: bool,
    shared: Arc<Inner>,
}

/// How the response of a request gets here.
pub(super) enum Transfer {
    /// The request has not been sent.
    Unsent,
    /// The connection's task reads it from the stream that all requests share.
    Shared,
    /// The caller polls this future: the request has an HTTP exchange of its own.
    Exchange(Boxed<()>),
    /// A task polls that future.
    Task(#[expect(dead_code, reason = "it is there to be dropped")] AbortOnDropHandle<()>),
    /// The HTTP exchange has ended.
    Done,
}

/// What the server sent for a request.
pub(crate) enum Next {
    Update(Update),
    Answer(Result<Raw, RpcFailure>),
}

impl InFlight {
    pub(super) fn new(
        number: Number,
        traits: Traits,
        received: ResponseReceiver,
        shared: Arc<Inner>,
    ) -> Self {
        Self {
            number,
            traits,
            received,
            transfer: Transfer::Unsent,
            answered: false,
            shared,
        }
    }

    /// The request was sent, or is sent by this exchange.
    pub(super) fn set_transfer(&mut self, transfer: Transfer) {
        self.transfer = transfer;
    }

    /// The next update or the answer, unless nothing comes before `deadline`. Cancel-safe. Must not
    /// be called after the answer.
    pub(crate) async fn next_before(&mut self, deadline: Instant) -> Option<Next> {
        timeout_at(deadline, self.next()).await.ok()
    }

    /// The next update or the answer, without a deadline. Cancel-safe. Must not be called after the
    /// answer.
    pub(crate) async fn next(&mut self) -> Next {
        let next = if let Transfer::Exchange(exchange) = &mut self.transfer {
            tokio::select! {
                biased;
                next = self.received.next() => next,
                () = exchange => {
                    self.transfer = Transfer::Done;
                    self.received.next().await
                }
            }
        } else {
            self.received.next().await
        };
        match &next {
            Next::Answer(_) => self.answered = true,
            Next::Update(Update::Request(_)) => self.leave_to_a_task(),
            Next::Update(Update::Notification(_)) => {}
        }
        next
    }

    /// The answer. Updates before it are dropped.
    pub(crate) async fn answer(mut self) -> Result<Raw, RpcFailure> {
        loop {
            if let Next::Answer(answer) = self.next().await {
                return answer;
            }
        }
    }

    /// Cancels the request, unless it was answered. Questions that are still queued are handled as by
    /// [`ask_again`](Self::ask_again).
    pub(crate) fn give_up(&mut self) {
        if !std::mem::replace(&mut self.answered, true) {
            let is_sent = !matches!(self.transfer, Transfer::Unsent);
            self.shared.give_up(self.number, is_sent);
            while let Some(request) = self.received.queued_question() {
                self.ask_again(request);
            }
        }
    }

    /// Handles an unanswered question of the server after this request has ended, so that the server
    /// does not wait for ever: the question is put to another call of the same caller, or refused.
    ///
    /// Over Streamable HTTP, the cancellation of the request ends its questions. A refusal is a POST of
    /// its own, which could overtake the cancellation, and the server would fail the call instead.
    pub(crate) fn ask_again(&self, request: Request) {
        let pending_requests = &self.shared.pending_requests;
        let names_calls = matches!(self.shared.link, Link::Http(_));
        if names_calls && self.shared.cancels(&self.traits) {
            pending_requests.answered(&request.id);
        } else {
            pending_requests.ask_again(request, &self.traits, names_calls);
        }
    }

    /// Moves the HTTP exchange to a task. The caller does not poll it while its client is asked a
    /// question, and the server may ping us on the stream meanwhile.
    fn leave_to_a_task(&mut self) {
        self.transfer = match std::mem::replace(&mut self.transfer, Transfer::Done) {
            Transfer::Exchange(exchange) => {
                let task = self.shared.tasks.tracker.spawn(exchange);
                Transfer::Task(AbortOnDropHandle::new(task))
            }
            transfer => transfer,
        };
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.give_up();
    }
}
