//! Which connections are open, and what is to become of them.
//!
//! A connection has no clock of its own and waits for no signals: either would be set up anew for
//! each request. Somebody looks at all connections now and then instead, and wakes those that are
//! concerned.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use futures_util::task::AtomicWaker;
use hyper::rt::{Sleep, Timer};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::lock::lock;

/// How often it is looked for overdue heads within the time that a head may take.
const ROUNDS: u32 = 8;

/// All connections that are open.
#[derive(Debug, Default)]
pub(super) struct Roster {
    open: Mutex<HashMap<u64, Arc<Entry>>>,
    last: AtomicU64,
    /// Fires when a connection comes.
    comes: Notify,
}

impl Roster {
    /// Takes in a connection, until what is returned is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let entry = Arc::new(Entry::default());
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(number, Arc::clone(&entry));
        self.comes.notify_one();
        Place {
            roster: Arc::clone(self),
            number,
            entry,
        }
    }

    /// Ends connections that take longer for a request head than `head_time`, by no more than an
    /// eighth of that.
    pub(super) async fn keep_time(&self, head_time: Duration) -> Infallible {
        #[expect(clippy::infinite_loop, reason = "whoever waits for it drops it")]
        loop {
            if lock(&self.open).is_empty() {
                self.comes.notified().await;
            }
            tokio::time::sleep(head_time / ROUNDS).await;
            for entry in lock(&self.open).values() {
                entry.look_at();
            }
        }
    }

    /// Has all connections end after their present answers.
    pub(super) fn close(&self) {
        for entry in lock(&self.open).values() {
            entry.is_closing.store(true, Ordering::Release);
            entry.waker.wake();
        }
    }

    /// Ends all connections at once.
    pub(super) fn abandon(&self) {
        for task in lock(&self.open)
            .values()
            .filter_map(|entry| entry.task.get())
        {
            task.abort();
        }
    }
}

/// A connection's place on the roster.
#[derive(Debug)]
pub(super) struct Place {
    roster: Arc<Roster>,
    number: u64,
    entry: Arc<Entry>,
}

impl Place {
    pub(super) fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.entry)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.roster.open).remove(&self.number);
    }
}

/// What a connection and the roster know of each other.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The task that serves the connection.
    pub(super) task: OnceLock<AbortHandle>,
    waker: AtomicWaker,
    is_closing: AtomicBool,
    /// How often it was begun and ceased to wait for a head: it is waited for if this is odd.
    waits: AtomicU32,
    /// The same when it was last looked at.
    seen: AtomicU32,
    /// How often in a row it was the same wait that was seen.
    rounds: AtomicU32,
}

impl Entry {
    /// Whether the connection is to end. The task of `cx` is woken when that changes, and when a
    /// head is overdue.
    pub(super) fn is_closing(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.is_closing.load(Ordering::Acquire)
    }

    fn look_at(&self) {
        let waits = self.waits.load(Ordering::Relaxed);
        let is_waiting = waits % 2 == 1;
        if self.seen.swap(waits, Ordering::Relaxed) != waits || !is_waiting {
            self.rounds.store(0, Ordering::Relaxed);
        } else if self.rounds.fetch_add(1, Ordering::Relaxed) + 1 >= ROUNDS {
            self.waker.wake();
        }
    }

    fn is_overdue(&self) -> bool {
        self.rounds.load(Ordering::Relaxed) >= ROUNDS
    }
}

/// The clock of one connection, which runs while a head is waited for.
pub(super) struct HeadTimer {
    entry: Arc<Entry>,
    made: Instant,
}

impl HeadTimer {
    pub(super) fn new(entry: Arc<Entry>) -> Self {
        let made = tokio::time::Instant::now().into_std();
        Self { entry, made }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, _duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.entry.waits.fetch_add(1, Ordering::Relaxed);
        Box::pin(HeadSleep(Arc::clone(&self.entry)))
    }

    fn sleep_until(&self, _deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(Duration::ZERO)
    }

    /// Any time will do: it is the roster that tells when time is up.
    fn now(&self) -> Instant {
        self.made
    }
}

/// Waits for a head.
struct HeadSleep(Arc<Entry>);

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.0.is_overdue() {
            Poll::Ready(())
        } else {
            // The task is registered whenever it is polled.
            Poll::Pending
        }
    }
}

impl Sleep for HeadSleep {}

impl Drop for HeadSleep {
    fn drop(&mut self) {
        self.0.waits.fetch_add(1, Ordering::Relaxed);
    }
}
