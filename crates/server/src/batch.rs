//! JSON-RPC batches, which 2025-03-26 has and 2024-11-05 tolerates (C04).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use plexus_mcp_core::Fault;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Id, Malformed, Message};

use crate::caller::CallerIdentity;
use crate::encoder::{EncodedResponse, anonymous_error};
use crate::exchange::{Exchange, Output};
use crate::session::{InFlightGuard, Session};
use crate::session_sink::SessionSink;

/// A batch being served: its requests run side by side.
pub(crate) struct Batch {
    answers: Vec<Bytes>,
    running: Vec<(Id, Exchange, InFlightGuard)>,
    /// The most bytes of all answers together.
    max_bytes: usize,
    /// Encodes the error for an answer above the limit.
    session: Arc<Session>,
}

/// Takes the members of a batch in order.
///
/// # Errors
/// The one answer to a batch in a session whose revision has none.
pub(crate) fn begin(
    session: &Arc<Session>,
    messages: Vec<Result<Message, Malformed>>,
    caller: Option<&CallerIdentity>,
) -> Result<Batch, EncodedResponse> {
    if session
        .revision()
        .is_some_and(|revision| !revision.features().batches)
    {
        let fault = Fault::InvalidRequest("this protocol version has no batches".to_owned());
        return Err(anonymous_error(session.spoken(), &fault));
    }
    let mut batch = Batch {
        answers: Vec::new(),
        running: Vec::new(),
        max_bytes: session.max_answer(),
        session: Arc::clone(session),
    };
    for message in messages {
        match message {
            Err(malformed) => batch.answers.push(session.malformed(&malformed).message),
            Ok(Message::Notification(notification)) => session.notified(&notification),
            Ok(Message::Response(response)) => session.answered(response),
            Ok(Message::Request(request)) if &*request.method == method::INITIALIZE => {
                let fault = Fault::InvalidRequest("initialize must not be in a batch".to_owned());
                batch
                    .answers
                    .push(session.refuse(&request.id, &fault).message);
            }
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                let asked = match session.read(request) {
                    Ok(asked) => asked,
                    Err(answer) => {
                        batch.answers.push(answer.message);
                        continue;
                    }
                };
                match session.begin(asked, caller) {
                    // Its answer has to come before its events, and cannot wait for the others.
                    (Exchange::Native(_), _) => {
                        let text = "a native call must not be in a batch";
                        let fault = Fault::InvalidRequest(text.to_owned());
                        batch.answers.push(session.refuse(&id, &fault).message);
                    }
                    (exchange, ticket) => batch.running.push((id, exchange, ticket)),
                }
            }
        }
    }
    Ok(batch)
}

impl Batch {
    /// Whether there is nothing to answer: only notifications and responses came.
    pub(crate) fn is_silent(&self) -> bool {
        self.answers.is_empty() && self.running.is_empty()
    }

    /// Runs all requests; messages on the way go to `sink`, the answers come back as one array,
    /// or not at all if there are none. Progress belongs to request `progress_of` of the transport.
    ///
    /// An answer with which the array would exceed the limit is dropped as soon as it comes, and
    /// replaced by an error.
    pub(crate) async fn run(self, sink: &SessionSink, progress_of: Option<u64>) -> Option<Bytes> {
        let Self {
            mut answers,
            running,
            max_bytes,
            session,
        } = self;
        let used = AtomicUsize::new(answers.iter().map(Bytes::len).sum());
        let requests = running.into_iter().map(|(id, exchange, ticket)| {
            let (used, session) = (&used, &session);
            async move {
                let answer = run(exchange, ticket, sink, progress_of).await?;
                let before = used.fetch_add(answer.len(), Ordering::Relaxed);
                if before + answer.len() <= max_bytes {
                    return Some(answer);
                }
                used.fetch_sub(answer.len(), Ordering::Relaxed);
                let text = format!(
                    "the answers of this batch are larger than {max_bytes} bytes together; \
                     send this request on its own"
                );
                Some(session.refuse(&id, &Fault::Internal(text)).message)
            }
        });
        answers.extend(join_all(requests).await.into_iter().flatten());
        (!answers.is_empty()).then(|| array(&answers))
    }
}

async fn run(
    mut exchange: Exchange,
    ticket: InFlightGuard,
    sink: &SessionSink,
    progress_of: Option<u64>,
) -> Option<Bytes> {
    loop {
        match exchange.next_unless(&ticket.cancel).await? {
            Output::Notification(message) => sink.offer(message),
            Output::Progress(message) => sink.offer_progress(message, progress_of),
            Output::Question(message) => sink.send(message).await,
            Output::Answer(answer) => return Some(answer.message),
        }
    }
}

fn array(messages: &[Bytes]) -> Bytes {
    let mut array =
        BytesMut::with_capacity(messages.iter().map(|m| m.len() + 1).sum::<usize>() + 1);
    let mut separator: &[u8] = b"[";
    for message in messages {
        array.extend_from_slice(separator);
        array.extend_from_slice(message);
        separator = b",";
    }
    array.extend_from_slice(b"]");
    array.freeze()
}
