//! The task of a connection.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::FutureExt;
use plexus_mcp_core::Boxed;
use plexus_mcp_wire::{Message, encode};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::{Inner, Order, lock};
use crate::error_text::with_stderr_tail;
use crate::link::{LinkError, MAX_QUEUED_MESSAGES, Outgoing, Room};

/// The task of a connection: it polls the transport, sends notifications and responses, and closes
/// the connection.
pub(super) struct Driver {
    pub(super) shared: Arc<Inner>,
    /// Reads and writes messages, as far as the transport needs a task for that.
    pub(super) work: Boxed<()>,
    /// Messages that wait for room.
    pub(super) outbox: VecDeque<Outgoing>,
}

impl Driver {
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>, _closed: DropGuard) {
        let shared = Arc::clone(&self.shared);
        let closed = |why: &str| LinkError::Closed(why.to_owned());
        let mut transport_done = false;
        // Kept over the rounds of the loop, to keep its place among those that wait for room.
        let mut room = pin!(shared.link.room());
        let error = loop {
            // No branch waits for the server to read, and none goes first: a server that floods us
            // or does not read can be called, cancelled and ended like any other.
            tokio::select! {
                () = &mut self.work, if !transport_done => transport_done = true,
                () = shared.pending_requests.changed.notified() => {
                    if let Some(error) = shared.pending_requests.lost() {
                        break error;
                    }
                    self.take_notices();
                }
                () = shared.stop.cancelled() => break closed("the connection was closed"),
                permit = &mut room, if !self.outbox.is_empty() => {
                    room.set(shared.link.room());
                    self.send_next(permit);
                }
                order = orders.recv(), if self.outbox.len() < MAX_QUEUED_MESSAGES => match order {
                    Some(order) => self.order(order),
                    // The last `Rpc` was dropped.
                    None => break closed("the connection was dropped"),
                },
            }
        };
        // Senders of further orders must not wait for this task.
        drop(orders);
        // Over stdio, the cancellation of a call that was dropped just before is still sent. Over HTTP,
        // `close` below discards it.
        room.set(shared.link.room());
        self.take_notices();
        while !self.outbox.is_empty()
            && let Some(permit) = shared.link.room().now_or_never()
        {
            self.send_next(permit);
        }
        let error = explained(error, &shared.link.stderr_tail());
        *lock(&shared.ending.reason) = Some(error.clone());
        shared.pending_requests.close(&error);
        // The work writes the queued messages and closes the input of a process while the link waits
        // for the process to end. It is dropped afterwards: a descendant of the process may hold a
        // full pipe open for ever.
        let rest = async {
            if !transport_done {
                self.work.await;
            }
            std::future::pending::<()>().await;
        };
        let grace = shared.tasks.grace();
        tokio::select! {
            () = shared.link.close(grace) => {}
            () = rest => {}
        }
    }

    fn order(&mut self, order: Order) {
        let Order { message, taken } = order;
        if let Message::Response(response) = &message
            && let Some(id) = &response.id
        {
            self.shared.pending_requests.answered(id);
        }
        self.outbox.push_back(Outgoing {
            taken,
            ..outgoing(&message)
        });
    }

    /// Sends the first message of the outbox.
    fn send_next(&mut self, room: Room<'_>) {
        if let Some(next) = self.outbox.pop_front() {
            self.shared.link.send(room, next);
        }
        self.take_notices();
    }

    /// Encodes the next message that the connection itself sends, when no other waits for room.
    fn take_notices(&mut self) {
        if self.outbox.is_empty()
            && let Some(notice) = self.shared.pending_requests.next_notice()
        {
            self.outbox.push_back(outgoing(&notice));
        }
    }
}

fn outgoing(message: &Message) -> Outgoing {
    let mut bytes = BytesMut::new();
    encode::message(&mut bytes, message);
    Outgoing {
        message: bytes,
        request: None,
        taken: None,
    }
}

/// Adds the last lines of the process's standard error to the reason.
fn explained(error: LinkError, stderr_tail: &[String]) -> LinkError {
    match error {
        LinkError::Closed(reason) => LinkError::Closed(with_stderr_tail(&reason, stderr_tail)),
        error => error,
    }
}
