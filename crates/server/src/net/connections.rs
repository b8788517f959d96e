//! The table of open connections. It closes connections whose clients do not read, when connections
//! or memory run short.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Limits;
use crate::lock::lock;

/// A connection may be evicted for a new one after it was idle for this long, or after its client has
/// not read for this long. It is short: if several hundred clients wait for a connection, all of
/// them must be served within a second.
const EVICTION_GRACE: Duration = Duration::from_millis(50);

/// How long a new connection waits for a free slot before it looks again for connections to evict.
const EVICTION_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A full table evicts this part of its connections at a time, so that the search is done rarely.
const EVICTED_PART: usize = 32;

/// Something to do when the client has received a whole response.
pub(super) type Receipt = Box<dyn FnOnce(Delivery) + Send>;

/// How certain it is that the client has received a whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The client sent its next request on the connection, or stayed connected until the connection was
    /// closed for being idle.
    Certain,
    /// The client closed the connection properly. It may have done so without reading all that its
    /// system had received.
    Likely,
}

/// The open connections of one server.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    slots: Arc<Semaphore>,
    capacity: usize,
    max_unread_bytes: usize,
    unread_bytes: AtomicUsize,
    last_number: AtomicU64,
    started: Instant,
    open: Mutex<HashMap<u64, Arc<OpenConnection>>>,
}

/// One open connection. Dropping its [`ConnectionGuard`] removes it from the table.
pub(super) struct OpenConnection {
    table: Arc<ConnectionTable>,
    number: u64,
    /// Fires when the connection is evicted.
    evicted: CancellationToken,
    /// Whether a request is being answered.
    busy: AtomicBool,
    /// Whether bytes arrived since the last request began.
    has_arrivals: AtomicBool,
    /// Whether the last request had arrived together with the one before, so that its client cannot have
    /// read the response to that.
    is_pipelined: AtomicBool,
    /// Bytes of responses that the operating system has not taken yet.
    unread_bytes: AtomicUsize,
    /// The last time at which the client sent or received something, in milliseconds since the table
    /// was made.
    progress_at: AtomicU64,
    /// What to do when the client has received the responses so far.
    receipts: Mutex<Vec<Receipt>>,
}

/// Keeps a connection in the table.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connection: Arc<OpenConnection>,
    _slot: OwnedSemaphorePermit,
}

impl ConnectionTable {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let capacity = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(capacity)),
            capacity,
            max_unread_bytes: limits.unread_bytes,
            unread_bytes: AtomicUsize::new(0),
            last_number: AtomicU64::new(0),
            started: Instant::now(),
            open: Mutex::default(),
        })
    }

    /// Adds a connection. If the table is full, connections are evicted that are idle or whose clients
    /// do not read. While there are none, this waits until a connection is closed.
    pub(super) async fn add(self: &Arc<Self>) -> ConnectionGuard {
        let slot = loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                break slot;
            }
            self.evict();
            let freed = timeout(
                EVICTION_RETRY_INTERVAL,
                Arc::clone(&self.slots).acquire_owned(),
            );
            if let Ok(Ok(slot)) = freed.await {
                break slot;
            }
        };
        let connection = Arc::new(OpenConnection {
            table: Arc::clone(self),
            number: self.last_number.fetch_add(1, Ordering::Relaxed),
            evicted: CancellationToken::new(),
            busy: AtomicBool::new(false),
            has_arrivals: AtomicBool::new(false),
            is_pipelined: AtomicBool::new(false),
            unread_bytes: AtomicUsize::new(0),
            progress_at: AtomicU64::new(self.now()),
            receipts: Mutex::default(),
        });
        lock(&self.open).insert(connection.number, Arc::clone(&connection));
        ConnectionGuard {
            connection,
            _slot: slot,
        }
    }

    /// Evicts connections for new ones: those whose clients pipeline requests, and those that are without
    /// progress; those first that have been so for the longest time.
    fn evict(&self) {
        let before = self.now().saturating_sub(milliseconds(EVICTION_GRACE));
        let is_stale = |connection: &OpenConnection| {
            let waits = connection.unread_bytes.load(Ordering::Relaxed) > 0;
            let is_busy = connection.busy.load(Ordering::Relaxed);
            connection.is_pipelined.load(Ordering::Relaxed)
                || ((waits || !is_busy) && connection.progress_at() <= before)
        };
        let stale = self.longest_without_progress(is_stale);
        for connection in stale.iter().take((self.capacity / EVICTED_PART).max(1)) {
            tracing::debug!("closed a connection to make room for a new one");
            connection.evict();
        }
    }

    /// Closes the connections whose clients have not read for the longest time, until a quarter of the
    /// limit is free. `spared` is not closed, so one response may be larger than the limit.
    fn close_unread(&self, spared: &OpenConnection) {
        let waits = |connection: &OpenConnection| {
            connection.number != spared.number
                && connection.unread_bytes.load(Ordering::Relaxed) > 0
        };
        let target = self.max_unread_bytes / 4 * 3;
        let mut closed: usize = 0;
        for connection in self.longest_without_progress(waits) {
            if self.unread_bytes.load(Ordering::Relaxed) <= target {
                break;
            }
            connection.evict();
            closed += 1;
        }
        tracing::warn!(
            closed,
            "too many bytes of responses wait for clients; closed connections whose clients do not read"
        );
    }

    fn longest_without_progress(
        &self,
        is_meant: impl Fn(&OpenConnection) -> bool,
    ) -> Vec<Arc<OpenConnection>> {
        let mut found: Vec<_> = lock(&self.open)
            .values()
            .filter(|connection| !connection.evicted.is_cancelled() && is_meant(connection))
            .map(Arc::clone)
            .collect();
        found.sort_by_cached_key(|connection| connection.progress_at());
        found
    }

    /// Milliseconds since the table was made.
    fn now(&self) -> u64 {
        milliseconds(self.started.elapsed())
    }
}

impl OpenConnection {
    /// A request arrived. Returns whether its client did not wait for the response before (pipelining),
    /// which no client of MCP does. Such a request is not a sign that the client reads.
    pub(super) fn begin_request(&self) -> bool {
        let is_pipelined = !self.has_arrivals.swap(false, Ordering::Relaxed);
        self.is_pipelined.store(is_pipelined, Ordering::Relaxed);
        self.progressed();
        self.busy.store(true, Ordering::Relaxed);
        if !is_pipelined {
            self.received(Delivery::Certain);
        }
        is_pipelined
    }

    /// Bytes arrived from the client.
    pub(super) fn arrived(&self) {
        self.has_arrivals.store(true, Ordering::Relaxed);
    }

    /// The response was handed over as a whole, or will never be. `receipt` is kept until the client has
    /// received it.
    pub(super) fn end_response(&self, receipt: Option<Receipt>) {
        self.busy.store(false, Ordering::Relaxed);
        self.progressed();
        if let Some(receipt) = receipt {
            lock(&self.receipts).push(receipt);
        }
    }

    /// The client has received all responses so far.
    pub(super) fn received(&self, delivery: Delivery) {
        let receipts = std::mem::take(&mut *lock(&self.receipts));
        for receipt in receipts {
            receipt(delivery);
        }
    }

    /// Bytes of a response wait for the client.
    pub(super) fn add_unread(&self, bytes: usize) {
        if self.evicted.is_cancelled() {
            return;
        }
        if self.unread_bytes.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.progressed();
        }
        let total = self.table.unread_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total > self.table.max_unread_bytes {
            self.table.close_unread(self);
        }
    }

    /// The operating system has taken all bytes.
    pub(super) fn clear_unread(&self) {
        if self.unread_bytes.load(Ordering::Relaxed) == 0 {
            return;
        }
        let unread = self.unread_bytes.swap(0, Ordering::Relaxed);
        self.table.unread_bytes.fetch_sub(unread, Ordering::Relaxed);
    }

    /// The client sent or received something. Without effect while pipelined requests are answered: the
    /// system takes the responses, but the client may read none of them.
    pub(super) fn progressed(&self) {
        if self.is_pipelined.load(Ordering::Relaxed) {
            return;
        }
        self.progress_at.store(self.table.now(), Ordering::Relaxed);
    }

    fn progress_at(&self) -> u64 {
        self.progress_at.load(Ordering::Relaxed)
    }

    fn evict(&self) {
        self.evicted.cancel();
        self.clear_unread();
    }
}

impl ConnectionGuard {
    pub(super) fn connection(&self) -> &Arc<OpenConnection> {
        &self.connection
    }

    /// Completes when the connection is evicted.
    pub(super) fn evicted(&self) -> CancellationToken {
        self.connection.evicted.clone()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        lock(&self.connection.table.open).remove(&self.connection.number);
        self.connection.evict();
    }
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenConnection")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
