//! Caller lanes: on a connection where a question does not say which call it belongs to, calls of
//! different callers are kept apart, so that a question can be attributed (TRANSLATION §4).
//!
//! Most servers never ask, so until the first question a call takes its lane at once. After that, a
//! call of a caller that can be asked waits until no call of another caller is running, for at most
//! [`LANE_WAIT_MAX`]; each question of a caller of the same principal extends the wait. Calls of a
//! principal enter in the order in which they began to wait (first in, first out), also those that
//! go on with an answer, so a client that asks continually cannot hold up the others of its
//! principal. A call that waits for the answer to its own question usually asks nothing more, so
//! other calls of its principal may run meanwhile, and get the questions that arrive. A question is
//! never sent to another principal than that of the call that may have asked it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_mcp_core::Principal;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::lock::lock;

/// The longest that a call waits for calls of other callers: from its start if one of them is of
/// another principal, else from the last question. Most calls end earlier. A question that arrives
/// while calls of several callers are running is refused.
const LANE_WAIT_MAX: Duration = Duration::from_millis(500);
/// How long a server counts as an asking server after its last question.
const ASKING_SERVER_PERIOD: Duration = Duration::from_mins(10);
/// How long a call that has just asked may ask more before other calls run, because some servers
/// ask several questions at once.
const FOLLOW_UP_QUESTION_WAIT: Duration = Duration::from_millis(25);

/// A caller, identified by an address that is unique while it calls.
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
    /// Calls that wait to enter a lane, the oldest first.
    queue: VecDeque<Queued>,
    last_ticket: u64,
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

#[derive(Debug)]
struct Queued {
    ticket: u64,
    caller: Caller,
    principal: Principal,
}

/// Why a call must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    None,
    /// Calls of other callers of its principal.
    OwnPrincipal,
    /// Calls of another principal.
    OtherPrincipal,
}

/// The caller that a question without a call id is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionTarget {
    /// No call is in a lane.
    NoCaller,
    Caller(Caller),
    /// It may be for several callers.
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

    /// Removes one waiting call of the caller.
    fn stop_waiting(&mut self, caller: Caller) {
        let ours = self.waiting.iter().position(|call| call.caller == caller);
        if let Some(ours) = ours {
            self.waiting.swap_remove(ours);
        }
    }

    /// Why the call with this place in the queue must wait: [`State::obstacle`], or a call of its
    /// principal that is ahead.
    fn obstacle_to_enter(&self, place: &QueuePlace) -> Obstacle {
        let is_ahead = |queued: &Queued| {
            queued.ticket < place.ticket
                && queued.caller != place.caller
                && queued.principal == place.principal
        };
        match self.obstacle(place.caller, &place.principal) {
            Obstacle::None if self.queue.iter().any(is_ahead) => Obstacle::OwnPrincipal,
            obstacle => obstacle,
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
        // Only calls that wait for answers are left, so one of them asks again.
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
            let place = self.join_queue(caller, principal);
            self.wait(&place, State::enter).await;
        }
        Lane {
            lanes: Arc::clone(self),
            caller,
            principal: principal.clone(),
            is_waiting: false,
            place: None,
        }
    }

    fn join_queue(self: &Arc<Self>, caller: Caller, principal: &Principal) -> QueuePlace {
        let mut state = lock(&self.state);
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.queue.push_back(Queued {
            ticket,
            caller,
            principal: principal.clone(),
        });
        QueuePlace {
            lanes: Arc::clone(self),
            ticket,
            caller,
            principal: principal.clone(),
            since: Instant::now(),
        }
    }

    /// Waits until no call of the principal is ahead and a question of this call would be unambiguous,
    /// or until the wait has taken too long, and then calls `enter` under the same lock, so that only
    /// one waiting call enters.
    async fn wait(
        &self,
        place: &QueuePlace,
        enter: impl FnOnce(&mut State, Caller, &Principal) + Send,
    ) {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            let now = Instant::now();
            let deadline = {
                let mut state = lock(&self.state);
                let deadline = match state.obstacle_to_enter(place) {
                    Obstacle::None => now,
                    // Questions of successive calls extend the wait.
                    Obstacle::OwnPrincipal => {
                        let asked = state.asked.unwrap_or(place.since);
                        asked.max(place.since) + LANE_WAIT_MAX
                    }
                    Obstacle::OtherPrincipal => place.since + LANE_WAIT_MAX,
                };
                if deadline <= now {
                    return enter(&mut state, place.caller, &place.principal);
                }
                deadline
            };
            // No notification is sent when `FOLLOW_UP_QUESTION_WAIT` has passed, so check again then.
            let look_again = deadline.min(now + FOLLOW_UP_QUESTION_WAIT);
            drop(timeout_at(look_again, progress).await);
        }
    }

    /// Records that a question arrived during a call.
    pub(super) fn asked(&self) {
        lock(&self.state).asked = Some(Instant::now());
    }

    /// The caller that a question without a call id is for.
    pub(super) fn question_target(&self) -> QuestionTarget {
        lock(&self.state).question_target()
    }
}

/// A call's place in the queue. Dropping it leaves the queue.
#[derive(Debug)]
struct QueuePlace {
    lanes: Arc<CallerLanes>,
    ticket: u64,
    caller: Caller,
    principal: Principal,
    since: Instant,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = lock(&self.lanes.state);
        state.queue.retain(|queued| queued.ticket != self.ticket);
        drop(state);
        self.lanes.progress.notify_waiters();
    }
}

/// A call's lane. Dropping it wakes waiting calls.
#[derive(Debug)]
pub(crate) struct Lane {
    lanes: Arc<CallerLanes>,
    caller: Caller,
    principal: Principal,
    is_waiting: bool,
    /// Set while a waiting call tries to enter again.
    place: Option<QueuePlace>,
}

impl Lane {
    /// Marks the call as waiting for an answer, so that other calls can enter.
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
        drop(state);
        self.place = None;
        self.lanes.progress.notify_waiters();
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Waits until the call can run again. If the future is dropped, the call keeps its place in the
    /// queue, and the next future waits only for the rest of the time.
    pub(crate) async fn go_on(&mut self) {
        if self.is_waiting {
            let enter = |state: &mut State, caller, principal: &Principal| {
                state.stop_waiting(caller);
                state.enter(caller, principal);
            };
            let place = self
                .place
                .get_or_insert_with(|| self.lanes.join_queue(self.caller, &self.principal));
            self.lanes.wait(place, enter).await;
            self.is_waiting = false;
            self.place = None;
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

    /// Records a question, and returns its target.
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

    /// When a call ends, only one of the waiting calls enters.
    #[tokio::test(start_paused = true)]
    async fn waiting_calls_enter_the_lane_one_at_a_time() {
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
            "no other call is in a lane"
        );
        let other = entered(&lanes, 2, &us()).unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Caller(2));
        assert!(
            first.go_on().now_or_never().is_none(),
            "questions would be ambiguous"
        );
        drop(other);
        first.go_on().now_or_never().unwrap();
        assert_eq!(asked(&lanes), QuestionTarget::Caller(1));
    }

    /// An open question or a long call delays another principal only briefly. A question that may
    /// belong to either principal is sent to neither.
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

    /// A call with an answer waits for another principal only once, even if messages of the server
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

    /// A call waits while other calls ask, but not while they only run long.
    #[tokio::test(start_paused = true)]
    async fn no_call_waits_for_ones_that_do_not_ask() {
        let lanes = lanes();
        let long = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        let principal = us();
        let mut other = Box::pin(lanes.enter(2, &principal, true));
        assert!((&mut other).now_or_never().is_none());
        let began = Instant::now();
        tokio::time::advance(LANE_WAIT_MAX / 2).await;
        asked(&lanes);
        assert!((&mut other).now_or_never().is_none());
        let _other = other.await;
        assert_eq!(began.elapsed(), LANE_WAIT_MAX + LANE_WAIT_MAX / 2);
        drop(long);
    }

    /// A call whose questions are answered at once keeps asking. A call of another client that waits
    /// is let in between.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_asks_continually_holds_up_no_other_client() {
        let lanes = lanes();
        let mut asking = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        asking.wait();
        let principal = us();
        let mut other = Box::pin(lanes.enter(2, &principal, true));
        assert!((&mut other).now_or_never().is_none());
        assert!(
            asking.go_on().now_or_never().is_none(),
            "the other call is ahead"
        );
        let began = Instant::now();
        let other = other.await;
        assert!(began.elapsed() <= FOLLOW_UP_QUESTION_WAIT);
        assert!(
            asking.go_on().now_or_never().is_none(),
            "the other call is running"
        );
        drop(other);
        asking.go_on().now_or_never().unwrap();
    }

    /// However many calls ask one after the other, each waits for those before it, and its question
    /// is put to its own caller.
    #[tokio::test(start_paused = true)]
    async fn many_calls_that_ask_enter_in_order() {
        const CALLS: Caller = 100;
        let lanes = lanes();
        let first = entered(&lanes, 0, &us()).unwrap();
        asked(&lanes);
        let principal = us();
        let mut queued: VecDeque<_> = (1..=CALLS)
            .map(|caller| Box::pin(lanes.enter(caller, &principal, true)))
            .collect();
        for call in &mut queued {
            assert!(call.now_or_never().is_none());
        }
        let mut parked = vec![first];
        parked.last_mut().unwrap().wait();
        for caller in 1..=CALLS {
            tokio::time::advance(FOLLOW_UP_QUESTION_WAIT).await;
            for later in queued.iter_mut().skip(1) {
                assert!(later.now_or_never().is_none());
            }
            let mut lane = queued.pop_front().unwrap().now_or_never().unwrap();
            assert_eq!(asked(&lanes), QuestionTarget::Caller(caller));
            lane.wait();
            parked.push(lane);
        }
    }

    /// A call that is given up in the queue holds up no other.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_given_up_leaves_the_queue() {
        let lanes = lanes();
        let first = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        let principal = us();
        let mut given_up = Box::pin(lanes.enter(2, &principal, true));
        assert!((&mut given_up).now_or_never().is_none());
        let mut other = Box::pin(lanes.enter(3, &principal, true));
        assert!((&mut other).now_or_never().is_none());
        drop(first);
        drop(given_up);
        assert!((&mut other).now_or_never().is_some());
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
            "the question may be of either call"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_unclear_while_several_calls_wait() {
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
    async fn the_asking_server_period_expires() {
        let lanes = lanes();
        let _one = entered(&lanes, 1, &us()).unwrap();
        asked(&lanes);
        tokio::time::advance(ASKING_SERVER_PERIOD / 2).await;
        assert!(entered(&lanes, 2, &us()).is_none());
        tokio::time::advance(ASKING_SERVER_PERIOD / 2).await;
        assert!(entered(&lanes, 2, &us()).is_some());
    }
}
