//! The parked-call store: calls that wait for their client to retry with answers.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_core::{Ask, Fault, Principal};
use tokio::time::Instant;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::fair_eviction::PrincipalShares;
use crate::lock::lock;
use crate::running_call::RunningCall;
use crate::seal::{RequestState, SealKey, Sealer, random};

/// A call that waits for answers, with its open questions. It does not run while it is parked.
pub(crate) struct ParkedCall {
    pub(crate) running: RunningCall,
    pub(crate) asks: Vec<(String, Ask)>,
    /// How many questions the call has asked so far; their keys are never used twice.
    pub(crate) asked: u32,
    /// The principal that the call belongs to.
    pub(crate) principal: Principal,
    /// The size of its parameters and questions.
    pub(crate) bytes: usize,
}

/// The limits of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParkingLimits {
    pub(crate) calls: usize,
    /// For the parameters and questions of all calls together.
    pub(crate) bytes: usize,
    /// How long a call waits.
    pub(crate) time: Duration,
}

/// The position of a parked call in the table, with which it can be parked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParkedPosition {
    state: RequestState,
}

/// All parked calls of one server. A call is taken out by the retry that presents its current
/// `requestState`, or dropped, and so cancelled, when it expires.
pub(crate) struct Parking {
    sealer: Sealer,
    started: Instant,
    table: Arc<Mutex<Table>>,
    limits: ParkingLimits,
}

#[derive(Default)]
struct Table {
    slots: HashMap<[u8; 16], Slot>,
    /// The size of all calls.
    bytes: usize,
}

struct Slot {
    call: ParkedCall,
    generation: u32,
    expires: u64,
    _expiry: AbortOnDropHandle<()>,
}

impl Parking {
    pub(crate) fn new(key: &SealKey, limits: ParkingLimits) -> Self {
        Self {
            sealer: Sealer::new(key),
            started: Instant::now(),
            table: Arc::default(),
            limits,
        }
    }

    /// Parks a call, which was parked at `before` already or never; gives the state that gets it
    /// back.
    pub(crate) fn park(
        &self,
        tracker: &TaskTracker,
        call: ParkedCall,
        binding: [u8; 32],
        before: Option<ParkedPosition>,
    ) -> Result<String, Fault> {
        let no_randomness = |error| Fault::Internal(format!("no randomness: {error}"));
        let expires = (self.started.elapsed() + self.limits.time).as_secs();
        let state = if let Some(ParkedPosition { state }) = before {
            RequestState {
                generation: state.generation + 1,
                expires,
                ..state
            }
        } else {
            let call = random().map_err(no_randomness)?;
            RequestState {
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
        place: ParkedPosition,
    ) -> Result<(), Fault> {
        self.insert(tracker, call, place.state)
    }

    /// Takes out the call that `token` refers to. The error is the same for every invalid token.
    pub(crate) fn take(
        &self,
        token: &str,
        binding: &[u8; 32],
    ) -> Result<(ParkedCall, ParkedPosition), Fault> {
        let state = self
            .sealer
            .open(token)
            .map_err(|_broken| Fault::InvalidState)?;
        if state.binding != *binding || state.expires < self.started.elapsed().as_secs() {
            return Err(Fault::InvalidState);
        }
        let mut table = lock(&self.table);
        match table.slots.get(&state.call) {
            Some(slot) if slot.generation == state.generation => {}
            _ => return Err(Fault::InvalidState),
        }
        let slot = table.remove(&state.call).ok_or(Fault::InvalidState)?;
        Ok((slot.call, ParkedPosition { state }))
    }

    fn insert(
        &self,
        tracker: &TaskTracker,
        call: ParkedCall,
        state: RequestState,
    ) -> Result<(), Fault> {
        // Dropped, and so cancelled, when the table is free again.
        let mut victims = Vec::new();
        let mut table = lock(&self.table);
        loop {
            let is_too_large = table.bytes + call.bytes > self.limits.bytes;
            if !is_too_large && table.slots.len() < self.limits.calls {
                break;
            }
            let weight = if is_too_large { by_size } else { by_number };
            let victim = victim(&table, &call, weight).ok_or_else(|| {
                Fault::Busy("too many calls wait for input; try again later".to_owned())
            })?;
            victims.extend(table.remove(&victim));
        }
        let remaining = Duration::from_secs(state.expires).saturating_sub(self.started.elapsed());
        let expiry = expire(Arc::clone(&self.table), state, remaining);
        let slot = Slot {
            call,
            generation: state.generation,
            expires: state.expires,
            _expiry: AbortOnDropHandle::new(tracker.spawn(expiry)),
        };
        table.bytes += slot.call.bytes;
        table.slots.insert(state.call, slot);
        drop(table);
        drop(victims);
        Ok(())
    }
}

impl Table {
    fn remove(&mut self, call: &[u8; 16]) -> Option<Slot> {
        let slot = self.slots.remove(call)?;
        self.bytes -= slot.call.bytes;
        Some(slot)
    }
}

fn by_number(_call: &ParkedCall) -> usize {
    1
}

fn by_size(call: &ParkedCall) -> usize {
    call.bytes
}

/// Eviction: the call that makes room for `newcomer`. It is the next to expire of the principal whose
/// calls weigh most, and never a call of the same principal.
fn victim(
    table: &Table,
    newcomer: &ParkedCall,
    weight: fn(&ParkedCall) -> usize,
) -> Option<[u8; 16]> {
    let entry = |slot: &Slot| weight(&slot.call);
    let parked = table.slots.values();
    let shares = PrincipalShares::new(
        parked.map(|slot| (&slot.call.principal, entry(slot))),
        (&newcomer.principal, weight(newcomer)),
    );
    table
        .slots
        .iter()
        .filter(|(_, slot)| slot.call.principal != newcomer.principal)
        .filter_map(|(id, slot)| Some((shares.of(&slot.call.principal)?, slot.expires, id)))
        .min_by_key(|(share, expires, _)| (Reverse(*share), *expires))
        .map(|(_, _, id)| *id)
}

async fn expire(table: Arc<Mutex<Table>>, state: RequestState, time: Duration) {
    tokio::time::sleep(time).await;
    let mut table = lock(&table);
    if table
        .slots
        .get(&state.call)
        .is_some_and(|slot| slot.generation == state.generation)
    {
        let expired = table.remove(&state.call);
        drop(table);
        tracing::debug!("a parked call expired");
        drop(expired);
    }
}
