//! The way of events from a call to its edge.
//!
//! Most calls say nothing before they end, so a queue that nothing was put in costs no more than its
//! place.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::sync::Notify;
use tokio::task::coop;

use super::Event;

/// How many events may wait for an edge before a call is made to wait with them.
const CAPACITY: usize = 64;

/// A queue for the events of one call.
pub(super) fn channel() -> (Sender, EventReceiver) {
    let queue = Arc::new(Queue {
        waiting: Mutex::new(Waiting {
            events: VecDeque::new(),
            reader: None,
            is_read: true,
        }),
        room: Notify::new(),
        senders: AtomicUsize::new(1),
    });
    let sender = Sender(Arc::clone(&queue));
    (sender, EventReceiver(queue))
}

struct Queue {
    waiting: Mutex<Waiting>,
    /// Fires when there is room again.
    room: Notify,
    senders: AtomicUsize,
}

struct Waiting {
    events: VecDeque<Event>,
    /// Whoever waits for the next event.
    reader: Option<Waker>,
    /// Whether anybody will take what is put in.
    is_read: bool,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where events are put in.
pub(super) struct Sender(Arc<Queue>);

impl Sender {
    /// Puts an event in, when there is room. If nobody takes events any more, it is dropped.
    ///
    /// Dropping the future drops the event.
    pub(super) async fn send(&self, event: Event) {
        coop::consume_budget().await;
        let mut event = Some(event);
        loop {
            let room = self.0.room.notified();
            {
                let mut waiting = self.0.waiting();
                if !waiting.is_read {
                    return;
                }
                if waiting.events.len() < CAPACITY {
                    waiting.events.extend(event.take());
                    if let Some(reader) = waiting.reader.take() {
                        drop(waiting);
                        reader.wake();
                    }
                    return;
                }
            }
            room.await;
        }
    }
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(reader) = self.0.waiting().reader.take()
        {
            reader.wake();
        }
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

/// Where an edge takes the events of a call from.
pub struct EventReceiver(Arc<Queue>);

impl EventReceiver {
    /// The next event; `None` when there will be none.
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // A call that never stops talking must let others have their turn.
        let turn = ready!(coop::poll_proceed(cx));
        let mut waiting = self.0.waiting();
        if let Some(event) = self.take(&mut waiting) {
            turn.made_progress();
            return Poll::Ready(Some(event));
        }
        if self.0.senders.load(Ordering::Acquire) == 0 {
            return Poll::Ready(None);
        }
        match &mut waiting.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The next event, if it is there.
    pub fn try_recv(&mut self) -> Option<Event> {
        self.take(&mut self.0.waiting())
    }

    fn take(&self, waiting: &mut Waiting) -> Option<Event> {
        let was_full = waiting.events.len() >= CAPACITY;
        let event = waiting.events.pop_front();
        if was_full {
            self.0.room.notify_waiters();
        }
        event
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.is_read = false;
        let unread = std::mem::take(&mut waiting.events);
        drop(waiting);
        // What an event holds may itself send when it is dropped.
        drop(unread);
        self.0.room.notify_waiters();
    }
}

impl std::fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventReceiver")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::yield_now;

    use super::*;

    fn event(number: usize) -> Event {
        Event::Content(number.to_string())
    }

    fn number(event: Option<Event>) -> Option<usize> {
        match event? {
            Event::Content(text) => text.parse().ok(),
            _ => None,
        }
    }

    #[tokio::test]
    async fn events_come_in_order_and_end_with_the_last_sender() {
        let (sender, mut receiver) = channel();
        let other = sender.clone();
        sender.send(event(1)).await;
        other.send(event(2)).await;
        drop((sender, other));
        assert_eq!(number(receiver.recv().await), Some(1));
        assert_eq!(number(receiver.try_recv()), Some(2));
        assert!(receiver.try_recv().is_none());
        assert!(receiver.recv().await.is_none());
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_by_an_event_and_by_the_end() {
        let (sender, mut receiver) = channel();
        let reading = async {
            let first = number(receiver.recv().await);
            (first, receiver.recv().await.is_none())
        };
        let sending = async {
            yield_now().await;
            sender.send(event(7)).await;
            yield_now().await;
            drop(sender);
        };
        let (read, ()) = tokio::join!(reading, sending);
        assert_eq!(read, (Some(7), true));
    }

    /// C57: a call that says more than anybody takes waits, and goes on when there is room.
    #[tokio::test]
    async fn a_full_queue_makes_the_sender_wait() {
        let (sender, mut receiver) = channel();
        for number in 0..CAPACITY {
            assert!(sender.send(event(number)).now_or_never().is_some());
        }
        let mut sending = Box::pin(sender.send(event(CAPACITY)));
        assert!(sending.as_mut().now_or_never().is_none());
        assert_eq!(number(receiver.recv().await), Some(0));
        sending.await;
        for expected in 1..=CAPACITY {
            assert_eq!(number(receiver.try_recv()), Some(expected));
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_receiver_that_is_gone() {
        let (sender, receiver) = channel();
        for number in 0..CAPACITY {
            sender.send(event(number)).await;
        }
        let mut sending = Box::pin(sender.send(event(CAPACITY)));
        assert!(sending.as_mut().now_or_never().is_none());
        drop(receiver);
        sending.await;
        sender.send(event(0)).await;
    }
}
