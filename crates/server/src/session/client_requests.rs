//! Requests to a legacy client: elicitation, sampling and roots.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use plexus_mcp_core::{Ask, AskError};
use plexus_mcp_protocol::convert::{InvalidAnswer, LoweredForm, Unrepresentable};
use plexus_mcp_protocol::messages::ElicitResult;
use plexus_mcp_protocol::{Revision, code};
use plexus_mcp_wire::{Id, Raw, Response, RpcError, encode};
use tokio::sync::{mpsc, oneshot};

use super::{Session, cancelled};
use crate::lock::lock;
use crate::question::{self, LoweredQuestion};

/// How often a lowered form is sent again because its answer does not fit the original form.
const MAX_REPEATS: u32 = 2;

/// Requests to the client that wait for a response, by request id.
#[derive(Default)]
pub(super) struct ClientRequests {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    last_id: i64,
    waiting: HashMap<Id, Reply>,
    /// Set when the client is gone.
    over: bool,
}

type Reply = oneshot::Sender<Result<Raw, AskError>>;

impl ClientRequests {
    pub(super) fn answered(&self, response: Response) {
        let Some(id) = response.id else {
            tracing::debug!("ignored an error without an id from the client");
            return;
        };
        let Some(reply) = self.forget(&id) else {
            tracing::debug!(%id, "ignored a response without a pending request");
            return;
        };
        // The call may have ended meanwhile.
        drop(reply.send(response.outcome.map_err(AskError::Refused)));
    }

    /// The client is gone: fails all pending requests.
    pub(super) fn abandon(&self) {
        let mut pending = self.lock();
        pending.over = true;
        pending.waiting.clear();
    }

    /// A fresh id, and where its answer will come.
    fn expect(&self) -> Option<(Id, oneshot::Receiver<Result<Raw, AskError>>)> {
        let mut pending = self.lock();
        if pending.over {
            return None;
        }
        pending.last_id += 1;
        let id = Id::from(pending.last_id);
        let (reply, answer) = oneshot::channel();
        pending.waiting.insert(id.clone(), reply);
        Some((id, answer))
    }

    /// Takes a question off the list, if it is there.
    fn forget(&self, id: &Id) -> Option<Reply> {
        self.lock().waiting.remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }
}

/// Questions that are sent again, on their way from the tasks that wait for their answers to the
/// call that they belong to.
pub(super) struct RepeatedQuestions {
    sender: mpsc::Sender<Bytes>,
    receiver: mpsc::Receiver<Bytes>,
}

impl Default for RepeatedQuestions {
    fn default() -> Self {
        // A task waits until the call has taken the question before.
        let (sender, receiver) = mpsc::channel(1);
        Self { sender, receiver }
    }
}

impl RepeatedQuestions {
    /// The next question to send; pending while there is none. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Bytes {
        match self.receiver.recv().await {
            Some(question) => question,
            // Not reached: `self` holds a sender.
            None => std::future::pending().await,
        }
    }
}

/// Makes `ask` a request to the client, and sees to its answer. `None` if it can be answered
/// without asking. Should the client have to be asked once more, that request goes to `repeated`.
pub(super) fn put(
    session: &Arc<Session>,
    revision: Revision,
    ask: Ask,
    repeated: &mut RepeatedQuestions,
) -> Option<Bytes> {
    let LoweredQuestion { params, form } = match question::lowered(&ask.question, revision) {
        Ok(lowered) => lowered,
        Err(reason) => {
            tracing::info!(%reason, "a question cannot be put to this client");
            ask.answer(Err(AskError::Refused(unaskable(&reason))));
            return None;
        }
    };
    let Some((id, answer)) = session.asks.expect() else {
        ask.answer(Err(AskError::Gone));
        return None;
    };
    let method = ask.question.method();
    let request = request(&id, method, params.as_ref());
    let lowered = form.zip(params).map(|(form, params)| {
        let repeated = repeated.sender.clone();
        RepeatableForm {
            form,
            params,
            repeated,
        }
    });
    let asking = Asking {
        session: Arc::clone(session),
        ask,
        id,
        answer,
    };
    session.edge.tracker.spawn(asking.run(lowered));
    Some(request)
}

/// A question whose answer is awaited.
struct Asking {
    session: Arc<Session>,
    ask: Ask,
    id: Id,
    answer: oneshot::Receiver<Result<Raw, AskError>>,
}

/// A form that was lowered to the client's revision.
struct RepeatableForm {
    form: LoweredForm,
    params: Raw,
    repeated: mpsc::Sender<Bytes>,
}

impl Asking {
    /// Awaits the answer and gives it to the call.
    ///
    /// The answer to a lowered form is raised to the original form first. One that does not fit is
    /// asked for again, with the reason, up to [`MAX_REPEATS`] times. After that the question counts
    /// as cancelled: the user made no choice that the server could use, every server has to expect
    /// this answer, and unlike an error it leaves the rest of the call to the server.
    async fn run(mut self, lowered: Option<RepeatableForm>) {
        let mut repeats = 0;
        let answer = loop {
            let given = self.given().await;
            let (Some(lowered), Ok(given)) = (&lowered, &given) else {
                break given;
            };
            let invalid = match lowered.form.raise(given) {
                Ok(raised) => break Ok(raised),
                Err(invalid) => invalid,
            };
            if repeats == MAX_REPEATS {
                tracing::warn!(%invalid, "no answer fits the form; the question counts as cancelled");
                break Ok(ElicitResult::cancel().to_raw());
            }
            repeats += 1;
            tracing::info!(%invalid, "an answer does not fit the form; the client is asked again");
            if !self.repeat(lowered, &invalid).await {
                break Err(AskError::Gone);
            }
        };
        self.ask.answer(answer);
    }

    /// The client's answer to the last request.
    async fn given(&mut self) -> Result<Raw, AskError> {
        let given = tokio::select! {
            answer = &mut self.answer => Some(answer.unwrap_or(Err(AskError::Gone))),
            // The call ended without its answer, or the client takes too long.
            () = self.ask.withdrawn() => None,
            () = tokio::time::sleep(self.session.edge.options.answer_time) => None,
        };
        given.unwrap_or_else(|| {
            drop(self.session.asks.forget(&self.id));
            self.session.sink.offer(cancelled(&self.id));
            Err(AskError::Gone)
        })
    }

    /// Asks again, with the reason in the message. Returns false if the session or the call is over.
    async fn repeat(&mut self, lowered: &RepeatableForm, invalid: &InvalidAnswer) -> bool {
        let Some((id, answer)) = self.session.asks.expect() else {
            return false;
        };
        let params = invalid.with_reason_in_message(&lowered.params);
        let request = request(&id, self.ask.question.method(), Some(&params));
        (self.id, self.answer) = (id, answer);
        let is_taken = lowered.repeated.send(request).await.is_ok();
        if !is_taken {
            drop(self.session.asks.forget(&self.id));
        }
        is_taken
    }
}

fn request(id: &Id, method: &str, params: Option<&Raw>) -> Bytes {
    let mut message = BytesMut::new();
    encode::request(&mut message, id, method, params);
    message.freeze()
}

/// The error for a question that the client's revision cannot express: the one that such a client
/// would answer with.
fn unaskable(reason: &Unrepresentable) -> RpcError {
    RpcError {
        code: code::INVALID_PARAMS,
        message: reason.to_string(),
        data: None,
    }
}
