//! Calls that wait for their client to come back with answers.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_service::{Ask, Fault, Principal};
use tokio::time::Instant;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::lock::lock;
use crate::running::Running;
use crate::seal::{SealKey, Sealer, State, random};
use crate::shares::Shares;

/// A call that asked something, and the questions that are open. It does not run while it waits.
pub(crate) struct ParkedCall {
    pub(crate) running: Running,
    pub(crate) asks: Vec<(String, Ask)>,
    /// How many questions the call has asked so far; their keys are never used twice.
    pub(crate) asked: u32,
    /// Whose it is.
    pub(crate) principal: Principal,
}

/// Where it stands in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    state: State,
}

/// All parked calls of one server. Each is taken out by the one request that holds its current
/// state, or dropped, and so cancelled, when its time is over.
pub(crate) struct Parking {
    sealer: Sealer,
    started: Instant,
    table: Arc<Mutex<HashMap<[u8; 16], Slot>>>,
    capacity: usize,
    time: Duration,
}

struct Slot {
    call: ParkedCall,
    generation: u32,
    expires: u64,
    _expiry: AbortOnDropHandle<()>,
}

impl Parking {
    pub(crate) fn new(key: &SealKey, capacity: usize, time: Duration) -> Self {
        Self {
            sealer: Sealer::new(key),
            started: Instant::now(),
            table: Arc::default(),
            capacity,
            time,
        }
    }

    /// Parks a call, which was parked at `before` already or never; gives the state that gets it
    /// back.
    pub(crate) fn park(
        &self,
        tracker: &TaskTracker,
        call: ParkedCall,
        binding: [u8; 32],
        before: Option<Place>,
    ) -> Result<String, Fault> {
        let no_randomness = |error| Fault::Internal(format!("no randomness: {error}"));
        let expires = (self.started.elapsed() + self.time).as_secs();
        let state = if let Some(Place { state }) = before {
            State {
                generation: state.generation + 1,
                expires,
                ..state
            }
        } else {
            let call = random().map_err(no_randomness)?;
            State {
                call,
                generation: 0,
                binding,
                expires,
            }
        };
        let token = self.sealer.seal(&state).map_err(no_randomness)?;
        self.insert(tracker, call, state)?;
        Ok(token)
    }

    /// Puts a call back where it was, so that the same state still gets it.
    pub(crate) fn put_back(
        &self,
        tracker: &TaskTracker,
        call: ParkedCall,
        place: Place,
    ) -> Result<(), Fault> {
        self.insert(tracker, call, place.state)
    }

    /// Takes out the call that `token` stands for. Whatever is wrong with the token, the answer
    /// is the same.
    pub(crate) fn take(
        &self,
        token: &str,
        binding: &[u8; 32],
    ) -> Result<(ParkedCall, Place), Fault> {
        let state = self
            .sealer
            .open(token)
            .map_err(|_broken| Fault::InvalidState)?;
        if state.binding != *binding || state.expires < self.started.elapsed().as_secs() {
            return Err(Fault::InvalidState);
        }
        let mut table = lock(&self.table);
        match table.get(&state.call) {
            Some(slot) if slot.generation == state.generation => {}
            _ => return Err(Fault::InvalidState),
        }
        let slot = table.remove(&state.call).ok_or(Fault::InvalidState)?;
        Ok((slot.call, Place { state }))
    }

    fn insert(&self, tracker: &TaskTracker, call: ParkedCall, state: State) -> Result<(), Fault> {
        // Dropped, and so cancelled, when the table is free again.
        let mut _victim = None;
        let mut table = lock(&self.table);
        if table.len() >= self.capacity {
            let victim = victim(&table, &call.principal).ok_or_else(|| {
                Fault::Busy("too many calls wait for input; try again later".to_owned())
            })?;
            _victim = table.remove(&victim);
        }
        let remaining = Duration::from_secs(state.expires).saturating_sub(self.started.elapsed());
        let expiry = expire(Arc::clone(&self.table), state, remaining);
        let slot = Slot {
            call,
            generation: state.generation,
            expires: state.expires,
            _expiry: AbortOnDropHandle::new(tracker.spawn(expiry)),
        };
        table.insert(state.call, slot);
        Ok(())
    }
}

/// The call that makes room for one of `newcomer`: the next to expire of whoever has the most. Nobody
/// gives up a call of their own for another.
fn victim(table: &HashMap<[u8; 16], Slot>, newcomer: &Principal) -> Option<[u8; 16]> {
    let shares = Shares::new(table.values().map(|slot| &slot.call.principal), newcomer);
    table
        .iter()
        .filter(|(_, slot)| slot.call.principal != *newcomer)
        .filter_map(|(id, slot)| Some((shares.of(&slot.call.principal)?, slot.expires, id)))
        .min_by_key(|(share, expires, _)| (Reverse(*share), *expires))
        .map(|(_, _, id)| *id)
}

async fn expire(table: Arc<Mutex<HashMap<[u8; 16], Slot>>>, state: State, time: Duration) {
    tokio::time::sleep(time).await;
    let mut table = lock(&table);
    if table
        .get(&state.call)
        .is_some_and(|slot| slot.generation == state.generation)
    {
        let expired = table.remove(&state.call);
        drop(table);
        tracing::debug!("a parked call expired");
        drop(expired);
    }
}
