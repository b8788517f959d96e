//! The one task of a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use plexus_wire::{Message, encode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::DropGuard;

use super::{Order, Shared, lock};
use crate::chain::with_last_words;
use crate::link::{LinkError, Outgoing, QUEUE};

/// The one task of a connection: it tells the server what is no request, and ends the connection
/// when that is due.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    /// Waits for the server to read.
    pub(super) outbox: VecDeque<Outgoing>,
}

impl Driver {
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>, _closed: DropGuard) {
        let shared = Arc::clone(&self.shared);
        let closed = |why: &str| LinkError::Closed(why.to_owned());
        let error = loop {
            // No branch waits for the server to read, and none goes first: a server that floods us
            // or does not read can be called, cancelled and ended like any other.
            tokio::select! {
                () = shared.board.changed.notified() => {
                    if let Some(error) = shared.board.lost() {
                        break error;
                    }
                    self.send_outbox();
                }
                now = until(shared.board.next_look()) => shared.board.look(now),
                () = shared.stop.cancelled() => break closed("the connection was closed"),
                () = shared.link.room(), if !self.outbox.is_empty() => self.send_outbox(),
                order = orders.recv(), if self.outbox.len() < QUEUE => match order {
                    Some(order) => self.order(order),
                    // Nobody is left to use the connection.
                    None => break closed("the connection was dropped"),
                },
            }
        };
        // Whoever still wants to tell the server something must not wait for us.
        drop(orders);
        // A call that was given up just before still is to be cancelled.
        self.send_outbox();
        let error = explained(error, &shared.link.last_words());
        *lock(&shared.ending.reason) = Some(error.clone());
        shared.board.close(&error);
        shared.link.close().await;
    }

    fn order(&mut self, order: Order) {
        let Order { message, taken } = order;
        if let Message::Response(response) = &message
            && let Some(id) = &response.id
        {
            self.shared.board.answered(id);
        }
        self.outbox.push_back(Outgoing {
            taken,
            ..outgoing(&message)
        });
        self.send_outbox();
    }

    /// Sends, in order, as far as there is room.
    fn send_outbox(&mut self) {
        loop {
            if self.outbox.is_empty()
                && let Some(notice) = self.shared.board.next_notice()
            {
                self.outbox.push_back(outgoing(&notice));
            }
            let Some(next) = self.outbox.pop_front() else {
                return;
            };
            if let Err(returned) = self.shared.link.try_send(next) {
                self.outbox.push_front(returned);
                return;
            }
        }
    }
}

/// Waits until then, or for ever.
async fn until(then: Option<Instant>) -> Instant {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
    Instant::now()
}

fn outgoing(message: &Message) -> Outgoing {
    let mut bytes = BytesMut::new();
    encode::message(&mut bytes, message);
    Outgoing {
        message: bytes,
        request: None,
        waiting: 0,
        taken: None,
    }
}

/// Why a process ended is best said by its own last words.
fn explained(error: LinkError, last_words: &[String]) -> LinkError {
    match error {
        LinkError::Closed(reason) => LinkError::Closed(with_last_words(&reason, last_words)),
        error => error,
    }
}
