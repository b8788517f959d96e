//! Whose turn it is where a question does not say which call it belongs to (TRANSLATION §4).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_service::Principal;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::numbers::NumberMap;
use crate::asks::Asks;
use crate::lock::lock;

/// How long a call that asked may still ask more before others go on.
const COLLECT: Duration = Duration::from_millis(25);

/// A caller, told apart from others by an address that is its own while it calls.
pub(crate) type Caller = usize;

/// Who may be meant by a question that names no call.
///
/// Most servers never ask anything, so at first all callers call at once. Once a question came, calls
/// that are under way together are of one caller; a call that waits for its own caller's answer lets
/// others go on meanwhile.
#[derive(Debug)]
pub(crate) struct Turns {
    asks: Asks,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Callers with calls that may ask now, and how many.
    running: NumberMap<Caller, usize>,
    /// Calls that wait for an answer.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    /// Should the call ask more, it is no other principal's business.
    principal: Principal,
    since: Instant,
}

impl Waiting {
    fn may_ask_more(&self) -> bool {
        self.since.elapsed() < COLLECT
    }
}

impl State {
    /// Whether a question that came now would be clear, if `caller` called as well.
    fn stays_clear(&self, caller: Caller, principal: &Principal) -> bool {
        let others_run = self.running.keys().any(|running| *running != caller);
        let others_wait = self.waiting.iter().any(|waiting| {
            waiting.caller != caller && (waiting.principal != *principal || waiting.may_ask_more())
        });
        !(others_run || others_wait)
    }

    fn meant(&self) -> Meant {
        match self.may_ask().as_slice() {
            [] => Meant::Nobody,
            [caller] => Meant::Caller(*caller),
            [_, _, ..] => Meant::Unclear,
        }
    }

    /// Those whose question it would be if one came now.
    fn may_ask(&self) -> Vec<Caller> {
        let waiting = self.waiting.iter().filter(|waiting| waiting.may_ask_more());
        let waiting = waiting.map(|waiting| waiting.caller);
        let mut callers: Vec<_> = self.running.keys().copied().chain(waiting).collect();
        callers.sort_unstable();
        callers.dedup();
        callers
    }
}

/// Who a question that names no call may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// Nobody has calls that would ask now.
    Nobody,
    Caller(Caller),
    /// It could be for several.
    Unclear,
}

impl Turns {
    /// Turns at a server of which this is known.
    pub(crate) fn new(asks: Asks) -> Self {
        Self {
            asks,
            state: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Waits until no other caller has calls that may ask.
    pub(crate) async fn take(self: &Arc<Self>, caller: Caller, principal: &Principal) -> Turn {
        if let Some(turn) = self.try_take(caller, principal) {
            return turn;
        }
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(turn) = self.try_take(caller, principal) {
                return turn;
            }
            // Those who may ask more end that without a word.
            drop(tokio::time::timeout(COLLECT, ended).await);
        }
    }

    fn try_take(self: &Arc<Self>, caller: Caller, principal: &Principal) -> Option<Turn> {
        let mut state = lock(&self.state);
        if self.asks.is_known() && !state.stays_clear(caller, principal) {
            return None;
        }
        *state.running.entry(caller).or_default() += 1;
        Some(Turn {
            turns: Arc::clone(self),
            caller,
            principal: principal.clone(),
            waits: false,
        })
    }

    /// A question came: who it may be for. From now on it will be clear.
    pub(super) fn asked(&self) -> Meant {
        self.asks.note();
        self.meant()
    }

    /// Who something may be for that names no call.
    pub(super) fn meant(&self) -> Meant {
        lock(&self.state).meant()
    }
}

/// One call's part in a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    caller: Caller,
    principal: Principal,
    waits: bool,
}

impl Turn {
    /// Lets others go on while the call waits for an answer.
    pub(crate) fn wait(&mut self) {
        if !self.waits {
            let mut state = lock(&self.turns.state);
            leave(&mut state.running, self.caller);
            state.waiting.push(Waiting {
                caller: self.caller,
                principal: self.principal.clone(),
                since: Instant::now(),
            });
            self.waits = true;
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waits
    }

    /// Waits until the call can go on. Dropping the future changes nothing.
    pub(crate) async fn go_on(&mut self) {
        if self.waits {
            let turn = self.turns.take(self.caller, &self.principal).await;
            *self = turn;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.turns.state);
        if self.waits {
            let ours = state
                .waiting
                .iter()
                .position(|waiting| waiting.caller == self.caller);
            if let Some(ours) = ours {
                state.waiting.swap_remove(ours);
            }
        } else {
            leave(&mut state.running, self.caller);
        }
        drop(state);
        self.turns.ended.notify_waiters();
    }
}

fn leave(running: &mut NumberMap<Caller, usize>, caller: Caller) {
    if let Some(calls) = running.get_mut(&caller) {
        *calls -= 1;
        if *calls == 0 {
            running.remove(&caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn turns() -> Arc<Turns> {
        Arc::new(Turns::new(Asks::default()))
    }

    fn us() -> Principal {
        Principal::new("us")
    }

    fn taken(turns: &Arc<Turns>, caller: Caller, principal: &Principal) -> Option<Turn> {
        turns.take(caller, principal).now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_asks_is_called_by_all_at_once() {
        let turns = turns();
        let _one = taken(&turns, 1, &us()).unwrap();
        let _other = taken(&turns, 2, &us()).unwrap();
        assert_eq!(turns.asked(), Meant::Unclear);
    }

    /// What was learnt on one connection holds on the next from the start.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_known_to_ask_is_called_by_one_at_a_time() {
        let asks = Asks::default();
        let before = Arc::new(Turns::new(asks.clone()));
        let _asked = taken(&before, 1, &us()).unwrap();
        before.asked();
        let next = Arc::new(Turns::new(asks));
        let _one = taken(&next, 1, &us()).unwrap();
        assert!(taken(&next, 2, &us()).is_none());
        assert_eq!(next.asked(), Meant::Caller(1));
    }

    /// TRANSLATION §4, the lane rule.
    #[tokio::test(start_paused = true)]
    async fn after_a_question_calls_of_one_caller_run_together_and_others_wait() {
        let turns = turns();
        let first = taken(&turns, 1, &us()).unwrap();
        assert_eq!(turns.asked(), Meant::Caller(1));
        let second = taken(&turns, 1, &us()).unwrap();
        assert!(taken(&turns, 2, &us()).is_none());
        drop(first);
        assert!(taken(&turns, 2, &us()).is_none());
        drop(second);
        taken(&turns, 2, &us()).expect("nobody is left");
        assert_eq!(turns.asked(), Meant::Nobody);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_lets_others_of_its_principal_go_on() {
        let turns = turns();
        let mut first = taken(&turns, 1, &us()).unwrap();
        turns.asked();
        first.wait();
        assert!(taken(&turns, 2, &us()).is_none(), "the first may ask more");
        assert_eq!(turns.asked(), Meant::Caller(1));
        tokio::time::advance(COLLECT).await;
        let stranger = Principal::new("stranger");
        assert!(taken(&turns, 3, &stranger).is_none());
        let other = taken(&turns, 2, &us()).unwrap();
        assert_eq!(turns.asked(), Meant::Caller(2));
        assert!(
            first.go_on().now_or_never().is_none(),
            "it would be unclear"
        );
        drop(other);
        first.go_on().now_or_never().unwrap();
        assert_eq!(turns.asked(), Meant::Caller(1));
        drop(first);
        taken(&turns, 3, &stranger).expect("nobody is left");
    }
}
