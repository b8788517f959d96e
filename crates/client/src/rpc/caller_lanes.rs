//! Caller lanes: on a connection where a question does not say which call it belongs to, calls of
//! different callers are kept apart, so that a question can be attributed (TRANSLATION §4).
//!
//! Most servers never ask, so a lane is taken at once until a question came during a call. After that,
//! a call of a caller that can be asked waits until no other caller's call is running, but no longer
//! than [`LANE_WAIT_MAX`]. A call that waits for the answer to its own question usually asks nothing
//! more meanwhile, so it holds up no others of its principal, and a question that comes while one of
//! these is running is put to that one. A question is never put to another principal than that of the
//! call that can have asked it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_core::Principal;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::lock::lock;

/// The longest that a call waits for calls of other callers: in all if one of them is of another
/// principal, else since the last question. Most calls are over by then; a question that comes while
/// calls of several callers are running is refused.
const LANE_WAIT_MAX: Duration = Duration::from_millis(500);
/// How long a server counts as one that asks after its last question.
const ASKING_SERVER_PERIOD: Duration = Duration::from_mins(10);
/// How long a call that has just asked may ask more before others go on: some ask several things at
/// once.
const FOLLOW_UP_QUESTION_WAIT: Duration = Duration::from_millis(25);

/// A caller, told apart from others by an address that is its own while it calls.
pub(crate) type Caller = usize;

/// The calls on one connection during which the server may ask.
#[derive(Debug, Default)]
pub(crate) struct CallerLanes {
    state: Mutex<State>,
    progress: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The callers with calls that are running.
    running: HashMap<Caller, Running>,
    /// Calls that wait for the answer to a question.
    waiting: Vec<Waiting>,
    /// When the server last asked during a call.
    asked: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    principal: Principal,
    calls: usize,
}

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    principal: Principal,
    since: Instant,
}

impl Waiting {
    fn may_ask_more(&self) -> bool {
        self.since.elapsed() < FOLLOW_UP_QUESTION_WAIT
    }
}

/// Why a call cannot go on yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    None,
    /// Calls of other callers of its principal.
    OwnPrincipal,
    /// Calls of another principal.
    OtherPrincipal,
}

/// Which caller a question is for that names no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionTarget {
    /// No call is in a lane.
    NoCaller,
    Caller(Caller),
    /// It could be for several.
    Unclear,
}

impl State {
    fn asks(&self) -> bool {
        self.asked
            .is_some_and(|asked| asked.elapsed() < ASKING_SERVER_PERIOD)
    }

    fn enter(&mut self, caller: Caller, principal: &Principal) {
        let new = || Running {
            principal: principal.clone(),
            calls: 0,
        };
        self.running.entry(caller).or_insert_with(new).calls += 1;
    }

    fn leave(&mut self, caller: Caller) {
        if let Some(running) = self.running.get_mut(&caller) {
            running.calls -= 1;
            if running.calls == 0 {
                self.running.remove(&caller);
            }
        }
    }

    /// Takes out one call of the caller that waits.
    fn stop_waiting(&mut self, caller: Caller) {
        let ours = self.waiting.iter().position(|call| call.caller == caller);
        if let Some(ours) = ours {
            self.waiting.swap_remove(ours);
        }
    }

    /// The calls that would make a question ambiguous if `caller` had a call running as well.
    fn obstacle(&self, caller: Caller, principal: &Principal) -> Obstacle {
        let mut obstacle = Obstacle::None;
        let running = self.running.iter();
        let running = running.map(|(other, running)| (*other, &running.principal, true));
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|call| (call.caller, &call.principal, call.may_ask_more()));
        for (other, of, may_ask) in running.chain(waiting) {
            if other == caller {
                continue;
            }
            if of != principal {
                return Obstacle::OtherPrincipal;
            }
            if may_ask {
                obstacle = Obstacle::OwnPrincipal;
            }
        }
        obstacle
    }

    fn question_target(&self) -> QuestionTarget {
        let just_asked = self.waiting.iter().filter(|call| call.may_ask_more());
        let just_asked = just_asked.map(|call| (call.caller, &call.principal));
        let running = self.running.iter();
        let running = running.map(|(caller, running)| (*caller, &running.principal));
        if let Some((caller, principal)) = running.chain(just_asked).next() {
            return match self.obstacle(caller, principal) {
                Obstacle::None => QuestionTarget::Caller(caller),
                Obstacle::OwnPrincipal | Obstacle::OtherPrincipal => QuestionTarget::Unclear,
            };
        }
        // Only calls that wait for answers are left: one of them asks more.
        let mut callers = self.waiting.iter().map(|call| call.caller);
        match callers.next() {
            None => QuestionTarget::NoCaller,
            Some(first) if callers.all(|caller| caller == first) => QuestionTarget::Caller(first),
            Some(_) => QuestionTarget::Unclear,
        }
    }
}

impl CallerLanes {
    /// Takes a lane for a call of `caller`, which `can_be_asked` or not. A caller that cannot be
    /// asked never waits.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        can_be_asked: bool,
    ) -> Lane {
        let waits = {
            let mut state = lock(&self.state);
            let waits = can_be_asked && state.asks();
            if !waits {
                state.enter(caller, principal);
            }
            waits
        };
        if waits {
            // Boxed: few servers ask, and every call would have room for this.
            Box::pin(self.wait(Instant::now(), caller, principal, State::enter)).await;
        }
        Lane {
            lanes: Arc::clone(self),
            caller,
            principal: principal.clone(),
            is_waiting: false,
            entering_since: None,
        }
    }

    /// Waits until a question of `caller`'s call would be unambiguous, up to [`LANE_WAIT_MAX`] after
    /// `began`, and then calls `enter` under the same lock, so that only one waiting call enters.
    async fn wait(
        &self,
        began: Instant,
        caller: Caller,
        principal: &Principal,
        enter: impl FnOnce(&mut State, Caller, &Principal) + Send,
    ) {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            let now = Instant::now();
            let deadline = {
                let mut state = lock(&self.state);
                let deadline = match state.obstacle(caller, principal) {
                    Obstacle::None => now,
                    // Calls that ask one after the other, as when many are parked, are waited for.
                    Obstacle::OwnPrincipal => {
                        state.asked.map_or(began, |asked| asked.max(began)) + LANE_WAIT_MAX
                    }
                    Obstacle::OtherPrincipal => began + LANE_WAIT_MAX,
                };
                if deadline <= now {
                    return enter(&mut state, caller, principal);
                }
                deadline
            };
            // No notification is sent when `FOLLOW_UP_QUESTION_WAIT` has passed, so check again then.
            let look_again = deadline.min(now + FOLLOW_UP_QUESTION_WAIT);
            drop(timeout_at(look_again, progress).await);
        }
    }

    /// Takes note of a question that came during a call.
    pub(super) fn asked(&self) {
        lock(&self.state).asked = Some(Instant::now());
    }

    /// Which caller a question is for that names no call.
    pub(super) fn question_target(&self) -> QuestionTarget {
        lock(&self.state).question_target()
    }
}

/// A call's lane. Dropping it lets others go on.
#[derive(Debug)]
pub(crate) struct Lane {
    lanes: Arc<CallerLanes>,
    caller: Caller,
    principal: Principal,
    is_waiting: bool,
    /// When the call, which is waiting, began to enter again.
    entering_since: Option<Instant>,
}

impl Lane {
    /// Lets others go on while the call waits for the answer to its question.
    pub(crate) fn wait(&mut self) {
        let mut state = lock(&self.lanes.state);
        if self.is_waiting {
            state.stop_waiting(self.caller);
        } else {
            state.leave(self.caller);
        }
        state.waiting.push(Waiting {
            caller: self.caller,
            principal: self.principal.clone(),
            since: Instant::now(),
        });
        self.is_waiting = true;
        self.entering_since = None;
        drop(state);
        self.lanes.progress.notify_waiters();
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Waits until the call can go on, but not for long. If the future is dropped, the next one waits
    /// only for the rest of the time.
    pub(crate) async fn go_on(&mut self) {
        if self.is_waiting {
            let enter = |state: &mut State, caller, principal: &Principal| {
                state.stop_waiting(caller);
                state.enter(caller, principal);
            };
            let began = *self.entering_since.get_or_insert_with(Instant::now);
            self.lanes
                .wait(began, self.caller, &self.principal, enter)
                .await;
            self.is_waiting = false;
            self.entering_since = None;
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = lock(&self.lanes.state);
        if self.is_waiting {
            state.stop_waiting(self.caller);
        } else {
            state.leave(self.caller);
        }
        drop(state);
        self.lanes.progress.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn lanes() -> Arc<CallerLanes> {
        Arc::new(CallerLanes::default())
    }

    fn us() -> Principal {
        Principal::new("us")
    }

    fn stranger() -> Principal {
        Principal::new("stranger")
    }

    fn entered(lanes: &Arc<CallerLanes>, caller: Caller, principal: &Principal) -> Option<Lane> {
        lanes.enter(caller, principal, true).now_or_never()
    }

    /// Takes note of a question, and gives who is meant.
    fn asked(lanes: &CallerLanes) -> QuestionTarget {
        lanes.asked();
        lanes.question_target()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_asks_is_called_by_all_at_once() {
        let lanes = lanes();
        assert_eq!(lanes.question_target(), QuestionTarget::NoCaller);
        let _one = entered(&lanes, 1, &us()).unwrap();
        let _other = entered(&lanes, 2, &us()).unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Unclear);
    }

    /// TRANSLATION §4, the lane rule.
    #[tokio::test(start_paused = true)]
    async fn after_a_question_another_caller_waits_until_the_first_is_done() {
        let lanes = lanes();
        let first = entered(&lanes, 1, &us()).unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
        let second = entered(&lanes, 1, &us()).expect("one caller's calls run together");
        let principal = us();
        let mut other = Box::pin(lanes.enter(2, &principal, true));
        assert!((&mut other).now_or_never().is_none());
        drop(first);
        assert!((&mut other).now_or_never().is_none());
        drop(second);
        let began = Instant::now();
        let _other = other.await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(lanes.question_target(), QuestionTarget::Caller(2));
    }

    /// Of several that wait for one, one goes on.
    #[tokio::test(start_paused = true)]
    async fn only_one_goes_on_at_a_time() {
        let lanes = lanes();
        let first = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        let principal = us();
        let mut second = Box::pin(lanes.enter(2, &principal, true));
        let mut third = Box::pin(lanes.enter(3, &principal, true));
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        let second = (&mut second).now_or_never().unwrap();
        assert!(
            (&mut third).now_or_never().is_none(),
            "the second is running"
        );
        drop(second);
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_lets_others_of_its_principal_go_on() {
        let lanes = lanes();
        let mut first = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        first.wait();
        assert!(
            entered(&lanes, 2, &us()).is_none(),
            "the first may ask more"
        );
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
        tokio::time::advance(FOLLOW_UP_QUESTION_WAIT).await;
        assert_eq!(
            asked(&lanes),
            QuestionTarget::Caller(1),
            "there is no other"
        );
        let other = entered(&lanes, 2, &us()).unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Caller(2));
        assert!(
            first.go_on().now_or_never().is_none(),
            "it would be unclear"
        );
        drop(other);
        first.go_on().now_or_never().unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
    }

    /// An open question, or a long call, holds up no other principal for long, and no question reaches
    /// it that may be another's.
    #[tokio::test(start_paused = true)]
    async fn another_principal_waits_a_moment_and_is_never_asked() {
        let lanes = lanes();
        let mut first = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        first.wait();
        tokio::time::advance(Duration::from_mins(1)).await;
        let began = Instant::now();
        let other = lanes.enter(2, &stranger(), true).await;
        assert_eq!(began.elapsed(), LANE_WAIT_MAX);
        assert_eq!(asked(&lanes), QuestionTarget::Unclear);
        let began = Instant::now();
        first.go_on().await;
        assert_eq!(began.elapsed(), LANE_WAIT_MAX);
        assert_eq!(asked(&lanes), QuestionTarget::Unclear);
        drop(other);
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
    }

    /// The answer to a question waits for another call only once, although messages of the server
    /// interrupt the wait.
    #[tokio::test(start_paused = true)]
    async fn an_interrupted_wait_does_not_begin_again() {
        let lanes = lanes();
        let mut first = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        first.wait();
        let _other = lanes.enter(2, &stranger(), true).await;
        let began = Instant::now();
        while timeout_at(Instant::now() + LANE_WAIT_MAX / 4, first.go_on())
            .await
            .is_err()
        {
            assert!(began.elapsed() < 2 * LANE_WAIT_MAX);
        }
        assert_eq!(began.elapsed(), LANE_WAIT_MAX);
    }

    /// Where calls ask one after the other, a call waits for its turn; where they only take long, it
    /// goes on.
    #[tokio::test(start_paused = true)]
    async fn no_call_waits_for_ones_that_do_not_ask() {
        let lanes = lanes();
        let long = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        let principal = us();
        let mut other = Box::pin(lanes.enter(2, &principal, true));
        assert!((&mut other).now_or_never().is_none());
        for _ in 0..3 {
            tokio::time::advance(LANE_WAIT_MAX / 2).await;
            asked(&lanes);
            assert!((&mut other).now_or_never().is_none());
        }
        let began = Instant::now();
        let _other = other.await;
        assert_eq!(began.elapsed(), LANE_WAIT_MAX);
        drop(long);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_cannot_be_asked_never_waits() {
        let lanes = lanes();
        let _one = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        let other = lanes.enter(2, &us(), false).now_or_never();
        assert!(other.is_some());
        assert_eq!(
            asked(&lanes),
            QuestionTarget::Unclear,
            "it may be its own question"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn several_that_wait_cannot_be_told_apart() {
        let lanes = lanes();
        let mut one = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        one.wait();
        tokio::time::advance(FOLLOW_UP_QUESTION_WAIT).await;
        let mut other = entered(&lanes, 2, &us()).unwrap();
        other.wait();
        tokio::time::advance(FOLLOW_UP_QUESTION_WAIT).await;
        assert_eq!(asked(&lanes), QuestionTarget::Unclear);
        drop(other);
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_server_asks_is_forgotten() {
        let lanes = lanes();
        let _one = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        tokio::time::advance(ASKING_SERVER_PERIOD / 2).await;
        assert!(entered(&lanes, 2, &us()).is_none());
        tokio::time::advance(ASKING_SERVER_PERIOD / 2).await;
        assert!(entered(&lanes, 2, &us()).is_some());
    }
}
