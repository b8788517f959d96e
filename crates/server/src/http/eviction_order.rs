//! The order in which sessions are evicted when there are too many.
//!
//! Each principal has a queue of its sessions, the longest idle first, and a quota. The order is
//! brought up to date when a session is to be evicted, not when a session is used: a session that was
//! used since it was queued goes to the end of its queue then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plexus_mcp_core::Principal;
use tokio::time::Instant;

use super::sessions::HttpSession;

/// How many sessions are inspected, at most, to find one that can be evicted.
const MAX_INSPECTED: usize = 64;

/// There are too many sessions, and those that were inspected are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// All sessions, in the order of eviction.
#[derive(Debug)]
pub(super) struct EvictionOrder {
    capacity: usize,
    /// The most sessions of one principal.
    quota: usize,
    sessions: usize,
    last_place: u64,
    queues: HashMap<Principal, BTreeMap<u64, Queued>>,
    /// The principals by the number of their sessions.
    by_size: BTreeSet<(usize, Principal)>,
}

/// A session in the queue of its principal.
#[derive(Debug)]
struct Queued {
    session: Arc<HttpSession>,
    /// When the session was used last, as of the time at which it was queued.
    last_used: Instant,
}

impl EvictionOrder {
    pub(super) fn new(capacity: usize, quota: usize) -> Self {
        Self {
            capacity,
            quota: quota.min(capacity),
            sessions: 0,
            last_place: 0,
            queues: HashMap::new(),
            by_size: BTreeSet::new(),
        }
    }

    /// Adds a session, and removes the one that makes room for it: one of the same principal if that has
    /// reached its quota, else one of the principal that has the most sessions.
    pub(super) fn add(
        &mut self,
        session: &Arc<HttpSession>,
    ) -> Result<Option<Arc<HttpSession>>, Full> {
        let principal = session.principal();
        let own = self.size(principal);
        let mut evicted = None;
        if own >= self.quota {
            evicted = Some(self.evict(principal)?);
        } else if self.sessions >= self.capacity {
            // The new session counts, so a principal with fewer sessions than the newcomer loses none.
            let victim = match self.by_size.last() {
                Some((size, largest)) if *size > own => largest.clone(),
                _ => principal.clone(),
            };
            evicted = Some(self.evict(&victim)?);
        }
        self.push(Arc::clone(session));
        Ok(evicted)
    }

    /// Removes a session, if it is there.
    pub(super) fn remove(&mut self, session: &HttpSession) {
        let place = session.place.load(Ordering::Relaxed);
        self.take(session.principal(), place);
    }

    pub(super) fn sessions(&self) -> Vec<Arc<HttpSession>> {
        let queues = self.queues.values().flat_map(BTreeMap::values);
        queues.map(|queued| Arc::clone(&queued.session)).collect()
    }

    /// Removes the longest idle session of `principal`.
    fn evict(&mut self, principal: &Principal) -> Result<Arc<HttpSession>, Full> {
        for _ in 0..MAX_INSPECTED {
            let queue = self.queues.get(principal).ok_or(Full)?;
            let (place, oldest) = queue.first_key_value().ok_or(Full)?;
            let (place, session) = (*place, Arc::clone(&oldest.session));
            let is_unused = oldest.last_used == session.last_used() && session.is_idle();
            self.take(principal, place);
            if is_unused {
                return Ok(session);
            }
            self.push(session);
        }
        // All of them were used meanwhile, so they are in the order of their places by now.
        let queue = self.queues.get(principal).ok_or(Full)?;
        let idle = queue.iter().take(MAX_INSPECTED);
        let mut idle = idle.filter(|(_, queued)| queued.session.is_idle());
        let (place, queued) = idle.next().ok_or(Full)?;
        let (place, session) = (*place, Arc::clone(&queued.session));
        self.take(principal, place);
        Ok(session)
    }

    /// Adds a session at the end of the queue of its principal.
    fn push(&mut self, session: Arc<HttpSession>) {
        let principal = session.principal().clone();
        self.last_place += 1;
        session.place.store(self.last_place, Ordering::Relaxed);
        let last_used = session.last_used();
        let queue = self.queues.entry(principal.clone()).or_default();
        self.by_size.remove(&(queue.len(), principal.clone()));
        queue.insert(self.last_place, Queued { session, last_used });
        self.by_size.insert((queue.len(), principal));
        self.sessions += 1;
    }

    fn take(&mut self, principal: &Principal, place: u64) {
        let Some(queue) = self.queues.get_mut(principal) else {
            return;
        };
        let before = queue.len();
        if queue.remove(&place).is_none() {
            return;
        }
        self.sessions -= 1;
        self.by_size.remove(&(before, principal.clone()));
        if queue.is_empty() {
            self.queues.remove(principal);
        } else {
            self.by_size.insert((queue.len(), principal.clone()));
        }
    }

    fn size(&self, principal: &Principal) -> usize {
        self.queues.get(principal).map_or(0, BTreeMap::len)
    }
}
