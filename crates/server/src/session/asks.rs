//! Questions to a legacy client, which are requests from us to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use plexus_mcp::Revision;
use plexus_mcp::messages::ElicitResult;
use plexus_service::{Ask, AskError, Question};
use plexus_wire::{Id, Raw, Response, encode};
use tokio::sync::oneshot;

use super::{Session, cancelled};
use crate::question;

/// Questions that wait for an answer.
#[derive(Default)]
pub(super) struct Asks {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    last_id: i64,
    /// A session has few at a time, and most have none.
    waiting: Vec<(Id, Reply)>,
    over: bool,
}

type Reply = oneshot::Sender<Result<Raw, AskError>>;

impl Asks {
    pub(super) fn answered(&self, response: Response) {
        let Some(id) = response.id else {
            tracing::debug!("ignored an error without an id from the client");
            return;
        };
        let Some(reply) = self.forget(&id) else {
            tracing::debug!(%id, "ignored an answer that nobody waits for");
            return;
        };
        // The call may have ended meanwhile.
        drop(reply.send(response.outcome.map_err(AskError::Refused)));
    }

    /// Nobody will answer any more.
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
        pending.waiting.push((id.clone(), reply));
        Some((id, answer))
    }

    /// Takes a question off the list, if it is there.
    fn forget(&self, id: &Id) -> Option<Reply> {
        let waiting = &mut self.lock().waiting;
        let place = waiting.iter().position(|(waiting, _)| waiting == id)?;
        Some(waiting.swap_remove(place).1)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes `ask` a request to the client, and sees to its answer. `None` if it can be answered
/// without asking.
pub(super) fn put(session: &Arc<Session>, revision: Revision, mut ask: Ask) -> Option<Bytes> {
    let params = match question::params(&ask.question, revision) {
        Ok(params) => params,
        Err(reason) => {
            tracing::info!(%reason, "a question cannot be put to this client");
            let answer = unasked(&ask.question);
            ask.answer(answer);
            return None;
        }
    };
    let Some((id, answer)) = session.asks.expect() else {
        ask.answer(Err(AskError::Gone));
        return None;
    };
    let mut message = BytesMut::new();
    encode::request(&mut message, &id, ask.question.method(), params.as_ref());

    let waiting = Arc::clone(session);
    session.edge.tracker.spawn(async move {
        let given = tokio::select! {
            answer = answer => Some(answer.unwrap_or(Err(AskError::Gone))),
            // The call ended without its answer, or the client takes too long.
            () = ask.withdrawn() => None,
            () = tokio::time::sleep(waiting.edge.options.answer_time) => None,
        };
        if given.is_none() {
            drop(waiting.asks.forget(&id));
            waiting.outlet.offer(cancelled(&id));
        }
        ask.answer(given.unwrap_or(Err(AskError::Gone)));
    });
    Some(message.freeze())
}

/// What counts as the answer to a question that the client's revision cannot put: a form it cannot
/// show is cancelled (TRANSLATION §6.4), anything else it is not able to do.
fn unasked(question: &Question) -> Result<Raw, AskError> {
    match question {
        Question::Elicit(_) => Ok(ElicitResult::cancel().to_raw()),
        other => Err(AskError::Unsupported(other.needs())),
    }
}
