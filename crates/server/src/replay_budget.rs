//! The byte budget for messages that event streams keep, for all streams of one server.
//!
//! When it is used up, the principal whose streams keep the most loses its oldest messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use plexus_mcp_core::Principal;

use crate::event_stream::{EventStream, Evictable};
use crate::lock::lock;

/// How far an eviction goes below the budget, as a fraction of it, so that evictions are rare.
const HYSTERESIS_PART: usize = 8;
/// How far an eviction makes one principal smaller than the next, as a fraction of the budget.
const FAIRNESS_PART: usize = 64;

/// The budget of one server, and what is used of it.
#[derive(Debug)]
pub(crate) struct ReplayBudget {
    limit: usize,
    used: AtomicUsize,
    shares: Mutex<HashMap<Principal, Weak<ReplayShare>>>,
    /// Held by the one eviction that runs.
    evicting: Mutex<()>,
}

/// The part of the budget that the streams of one principal use.
#[derive(Debug)]
pub(crate) struct ReplayShare {
    budget: Arc<ReplayBudget>,
    principal: Principal,
    used: AtomicUsize,
    last_place: AtomicU64,
    /// The streams of the principal, oldest first.
    streams: Mutex<BTreeMap<u64, Weak<EventStream>>>,
}

impl ReplayBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            shares: Mutex::default(),
            evicting: Mutex::default(),
        })
    }

    /// The share of `principal`.
    pub(crate) fn share(self: &Arc<Self>, principal: &Principal) -> Arc<ReplayShare> {
        let mut shares = lock(&self.shares);
        if let Some(share) = shares.get(principal).and_then(Weak::upgrade) {
            return share;
        }
        let share = Arc::new(ReplayShare {
            budget: Arc::clone(self),
            principal: principal.clone(),
            used: AtomicUsize::new(0),
            last_place: AtomicU64::new(0),
            streams: Mutex::default(),
        });
        shares.insert(principal.clone(), Arc::downgrade(&share));
        share
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes room. Without effect while another eviction runs: that one continues until there is room.
    fn evict(&self) {
        let _only_one = match self.evicting.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        };
        let target = self.limit - self.limit / HYSTERESIS_PART;
        let mut exhausted = HashSet::new();
        while self.used() > target {
            let Some((share, next)) = self.largest_share(&exhausted) else {
                tracing::warn!(
                    bytes = self.used(),
                    "responses in progress exceed the limit of messages kept for clients"
                );
                return;
            };
            let floor = next.saturating_sub(self.limit / FAIRNESS_PART);
            if !share.evict_until(|| self.used() <= target || share.used() < floor) {
                exhausted.insert(share.principal.clone());
            }
        }
    }

    /// The share that uses most, and how much the next one uses.
    fn largest_share(&self, except: &HashSet<Principal>) -> Option<(Arc<ReplayShare>, usize)> {
        let mut largest: Option<Arc<ReplayShare>> = None;
        let mut next = 0;
        let shares: Vec<_> = lock(&self.shares)
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for share in shares {
            if except.contains(&share.principal) {
                continue;
            }
            let used = share.used();
            match &largest {
                Some(known) if known.used() >= used => next = next.max(used),
                _ => {
                    next = largest.map_or(next, |known| known.used());
                    largest = Some(share);
                }
            }
        }
        largest.map(|share| (share, next))
    }
}

impl ReplayShare {
    /// Adds a stream, and returns its place in the order of age.
    pub(crate) fn add(&self, stream: &Weak<EventStream>) -> u64 {
        let place = self.last_place.fetch_add(1, Ordering::Relaxed);
        lock(&self.streams).insert(place, Weak::clone(stream));
        place
    }

    /// Removes the stream at `place`.
    pub(crate) fn remove(&self, place: u64) {
        lock(&self.streams).remove(&place);
    }

    /// A stream that used `before` bytes uses `after` bytes now. No stream may be locked.
    pub(crate) fn adjust(&self, before: usize, after: usize) {
        if after <= before {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
            self.budget
                .used
                .fetch_sub(before - after, Ordering::Relaxed);
            return;
        }
        let more = after - before;
        self.used.fetch_add(more, Ordering::Relaxed);
        let used = self.budget.used.fetch_add(more, Ordering::Relaxed) + more;
        if used > self.budget.limit {
            self.budget.evict();
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Evicts messages, oldest stream first, until `is_enough`: first what clients have read, then what
    /// is kept for clients that are disconnected, at last what clients do not read. Returns false if
    /// that was not enough.
    fn evict_until(&self, is_enough: impl Fn() -> bool) -> bool {
        let streams: Vec<_> = lock(&self.streams).values().map(Weak::clone).collect();
        for evictable in [
            Evictable::Read,
            Evictable::Disconnected,
            Evictable::Everything,
        ] {
            for stream in streams.iter().filter_map(Weak::upgrade) {
                stream.evict(evictable);
                if is_enough() {
                    return true;
                }
            }
        }
        false
    }
}

impl Drop for ReplayShare {
    fn drop(&mut self) {
        let mut shares = lock(&self.budget.shares);
        // A new share of the same principal may have taken its place.
        if shares
            .get(&self.principal)
            .is_some_and(|share| share.strong_count() == 0)
        {
            shares.remove(&self.principal);
        }
    }
}
