use super::*;

const IDLES: [Idle; 4] = [Idle::New, Idle::Failed, Idle::NeedsAuth, Idle::Disconnected];

/// A state machine with a fake clock.
struct Case {
    lifecycle: Lifecycle,
    now: Instant,
}

impl Case {
    fn new(auto_restart: bool) -> Self {
        Self {
            lifecycle: Lifecycle::new(auto_restart),
            now: Instant::now(),
        }
    }

    fn at(phase: Phase) -> Self {
        let mut case = Self::new(true);
        case.lifecycle.phase = phase;
        case
    }

    fn handle(&mut self, input: Input) -> Action {
        self.lifecycle.handle(self.now, 0.0, input)
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn connected(&self) -> Input {
        Input::Connected {
            started: Some(self.now),
        }
    }

    /// An attempt that fails at once.
    fn crash(&mut self) {
        self.crash_after(Duration::ZERO);
    }

    /// An attempt whose process ended by itself after this time.
    fn crash_after(&mut self, lasted: Duration) {
        self.handle(Input::Failed {
            needs_auth: false,
            crashed_after: Some(lasted),
        });
    }

    /// How long until the next attempt.
    fn delay(&self) -> Duration {
        match self.lifecycle.phase {
            Phase::Backoff { until } => until - self.now,
            other => panic!("no backoff: {other:?}"),
        }
    }

    fn wait_for_deadline(&mut self) {
        self.now = self.lifecycle.deadline().expect("there is a deadline");
        assert_eq!(self.handle(Input::DeadlinePassed), Action::Connect);
    }
}

fn lost() -> Input {
    Input::Lost { answered: false }
}

fn failed() -> Input {
    Input::Failed {
        needs_auth: false,
        crashed_after: None,
    }
}

fn refused() -> Input {
    Input::Failed {
        needs_auth: true,
        crashed_after: None,
    }
}

/// The action and the next phase for every pair of a phase and an input.
#[test]
fn every_transition() {
    let now = Instant::now();
    let ready = Phase::Ready {
        since: now,
        is_process: false,
    };
    let backoff = Phase::Backoff {
        until: now + Duration::from_secs(5),
    };
    let all = IDLES.map(Phase::Idle);
    let all = all.into_iter().chain([Phase::Connecting, ready, backoff]);
    let inputs = [
        Input::Start,
        Input::Call,
        Input::Connect,
        Input::Disconnect,
        Input::Connected { started: None },
        failed(),
        refused(),
        lost(),
        Input::SessionLost { answered: true },
        Input::SessionLost { answered: false },
        Input::DeadlinePassed,
    ];
    let connect = (Action::Connect, Phase::Connecting);
    let again = Phase::Backoff {
        until: now + RECONNECT_BACKOFF_MIN,
    };
    let off = Phase::Idle(Idle::Disconnected);
    for phase in all {
        for input in &inputs {
            let expected = match (phase, input) {
                (Phase::Idle(Idle::New), Input::Start | Input::Call)
                | (Phase::Idle(Idle::NeedsAuth), Input::Call)
                | (Phase::Idle(_), Input::Connect)
                | (Phase::Backoff { .. }, Input::Call | Input::Connect)
                | (Phase::Ready { .. }, Input::SessionLost { answered: true }) => connect,
                (Phase::Connecting | Phase::Ready { .. }, Input::Disconnect) => {
                    (Action::Disconnect, off)
                }
                (_, Input::Disconnect) => (Action::Nothing, off),
                (Phase::Connecting, Input::Connected { .. }) => (Action::Nothing, ready),
                (
                    Phase::Connecting,
                    Input::Failed {
                        needs_auth: true, ..
                    },
                ) => (Action::Nothing, Phase::Idle(Idle::NeedsAuth)),
                (Phase::Connecting, Input::Failed { .. })
                | (Phase::Ready { .. }, Input::Lost { .. } | Input::SessionLost { .. }) => {
                    (Action::Nothing, again)
                }
                // All other inputs are outdated, and change nothing.
                _ => (Action::Nothing, phase),
            };
            let mut case = Case::at(phase);
            case.now = now;
            let action = case.handle(input.clone());
            assert_eq!(
                (action, case.lifecycle.phase),
                expected,
                "{phase:?} {input:?}"
            );
        }
    }
}

/// A repeated input has no effect.
#[test]
fn duplicates_change_nothing() {
    let mut case = Case::new(true);
    assert_eq!(case.handle(Input::Start), Action::Connect);
    for input in [Input::Start, Input::Call, Input::Connect] {
        let name = format!("{input:?}");
        assert_eq!(case.handle(input), Action::Nothing, "{name}");
    }
    let connected = case.connected();
    for _ in 0..2 {
        assert_eq!(case.handle(connected.clone()), Action::Nothing);
        assert!(matches!(case.lifecycle.phase, Phase::Ready { .. }));
    }
    case.handle(lost());
    let phase = case.lifecycle.phase;
    case.handle(lost());
    assert_eq!(case.lifecycle.phase, phase, "a repeated input is ignored");
    assert_eq!(case.lifecycle.crashes, 1);
}

#[test]
fn a_deadline_that_has_not_come_changes_nothing() {
    let mut case = Case::new(true);
    case.handle(Input::Call);
    case.handle(failed());
    case.pass(RECONNECT_BACKOFF_MIN / 2);
    assert_eq!(case.handle(Input::DeadlinePassed), Action::Nothing);
    case.wait_for_deadline();
    assert_eq!(case.lifecycle.deadline(), None, "an attempt is under way");
}

#[test]
fn attempts_back_off_from_half_a_second_to_a_minute() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    let delays = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 40.0, 40.0];
    for delay in delays {
        case.handle(failed());
        assert_eq!(case.delay(), Duration::from_secs_f64(delay));
        case.wait_for_deadline();
    }
    // An answered request resets the backoff.
    let connected = Input::Connected { started: None };
    case.handle(connected);
    case.handle(Input::Lost { answered: true });
    assert_eq!(case.delay(), RECONNECT_BACKOFF_MIN);
}

#[test]
fn five_short_starts_without_an_answer_are_a_crash_loop() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for crashes in 1..CRASH_LOOP_STARTS {
        case.crash();
        assert!(!case.lifecycle.is_crash_looping(), "{crashes}");
        // Before that, a call connects at once.
        assert_eq!(case.handle(Input::Call), Action::Connect);
    }
    // A server that connects and then exits counts as a crash, too.
    let connected = case.connected();
    case.handle(connected);
    case.pass(CRASH_WINDOW / 2);
    case.handle(lost());
    assert!(case.lifecycle.is_crash_looping());
    assert_eq!(case.delay(), CRASH_LOOP_BACKOFF_MIN);
    assert_eq!(
        case.handle(Input::Call),
        Action::Nothing,
        "calls are refused"
    );

    for seconds in [120, 240, 400, 400] {
        case.wait_for_deadline();
        case.crash();
        assert_eq!(case.delay(), Duration::from_secs(seconds));
    }
    // One answered request ends the crash loop.
    case.wait_for_deadline();
    let connected = case.connected();
    case.handle(connected);
    case.handle(Input::Lost { answered: true });
    assert!(!case.lifecycle.is_crash_looping());
    assert_eq!(case.delay(), RECONNECT_BACKOFF_MIN);
}

/// A server that crashes at once is started after the delays of the backoff until it is crash-looping.
#[test]
fn a_server_that_crashes_at_once_has_all_delays_before_it_is_crash_looping() {
    let mut case = Case::new(true);
    let began = case.now;
    case.handle(Input::Start);
    for seconds in [0.5, 1.5, 3.5, 7.5] {
        case.crash();
        case.wait_for_deadline();
        assert_eq!(case.now - began, Duration::from_secs_f64(seconds));
    }
    case.crash();
    assert!(case.lifecycle.is_crash_looping());
    assert_eq!(case.delay(), CRASH_LOOP_BACKOFF_MIN);
}

#[test]
fn a_failed_attempt_whose_process_lasted_breaks_the_row() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 1..CRASH_LOOP_STARTS {
        case.crash();
        case.wait_for_deadline();
    }
    case.crash_after(CRASH_WINDOW);
    assert_eq!(case.lifecycle.crashes, 0);
}

#[test]
fn a_start_that_lasts_breaks_the_row() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 1..CRASH_LOOP_STARTS {
        case.crash();
        case.wait_for_deadline();
    }
    let connected = case.connected();
    case.handle(connected);
    case.pass(CRASH_WINDOW);
    case.handle(lost());
    assert_eq!(case.lifecycle.crashes, 0);
    assert_eq!(case.delay(), RECONNECT_BACKOFF_MIN);
}

/// A connection without a process that lasted resets the backoff, even without calls.
#[test]
fn a_connection_that_lasted_resets_the_backoff() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 0..5 {
        case.handle(failed());
        case.wait_for_deadline();
    }
    case.handle(Input::Connected { started: None });
    case.pass(CRASH_WINDOW);
    case.handle(lost());
    assert_eq!(case.delay(), RECONNECT_BACKOFF_MIN);
}

#[test]
fn a_start_that_does_not_crash_breaks_the_row() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 0..CRASH_LOOP_STARTS {
        case.crash();
        case.wait_for_deadline();
    }
    assert!(case.lifecycle.is_crash_looping());
    case.handle(failed());
    assert!(!case.lifecycle.is_crash_looping());
    assert_eq!(case.handle(Input::Call), Action::Connect);
}

/// A server that hangs at its start has not crashed, but is started again only with backoff.
#[test]
fn a_start_that_fails_late_still_backs_off() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for delay in [0.5, 1.0, 2.0] {
        case.pass(CRASH_WINDOW);
        case.crash_after(CRASH_WINDOW);
        assert_eq!(case.delay(), Duration::from_secs_f64(delay));
        assert_eq!(case.lifecycle.crashes, 0);
        case.wait_for_deadline();
    }
}

/// A server that loses each session before it has answered a request is reconnected with backoff.
#[test]
fn sessions_that_are_lost_at_once_back_off() {
    for auto_restart in [true, false] {
        let mut case = Case::new(auto_restart);
        case.handle(Input::Start);
        for delay in [0.5, 1.0, 2.0] {
            case.handle(Input::Connected { started: None });
            case.handle(Input::SessionLost { answered: false });
            assert_eq!(case.delay(), Duration::from_secs_f64(delay));
            case.wait_for_deadline();
        }
    }
}

/// Without a process, an attempt is cheap, so every call makes one.
#[test]
fn a_server_without_a_process_never_crash_loops() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 0..20 {
        case.handle(failed());
        assert_eq!(case.handle(Input::Call), Action::Connect);
    }
    assert!(!case.lifecycle.is_crash_looping());
}

#[test]
fn a_person_can_always_connect() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    for _ in 0..CRASH_LOOP_STARTS {
        case.crash();
        if !case.lifecycle.is_crash_looping() {
            case.wait_for_deadline();
        }
    }
    assert!(case.lifecycle.is_crash_looping());
    assert_eq!(case.handle(Input::Connect), Action::Connect);
    assert!(!case.lifecycle.is_crash_looping(), "it begins anew");
}

#[test]
fn without_auto_restart_only_a_person_brings_it_back() {
    for end in [failed(), lost()] {
        let mut case = Case::new(false);
        assert_eq!(case.handle(Input::Call), Action::Connect, "the first time");
        if end == lost() {
            let connected = case.connected();
            case.handle(connected);
        }
        case.handle(end);
        assert_eq!(case.lifecycle.phase, Phase::Idle(Idle::Failed));
        assert_eq!(case.lifecycle.deadline(), None);
        for input in [Input::Start, Input::Call, Input::DeadlinePassed] {
            let name = format!("{input:?}");
            assert_eq!(case.handle(input), Action::Nothing, "{name}");
        }
        assert_eq!(case.handle(Input::Connect), Action::Connect);
    }
    // A lost session is not a crash.
    let mut case = Case::new(false);
    case.handle(Input::Call);
    let connected = case.connected();
    case.handle(connected);
    let answered = true;
    assert_eq!(
        case.handle(Input::SessionLost { answered }),
        Action::Connect
    );
}

#[test]
fn jitter_is_the_callers() {
    let mut case = Case::new(true);
    case.handle(Input::Start);
    let now = case.now;
    case.lifecycle.handle(now, 1.0, failed());
    assert_eq!(case.delay(), RECONNECT_BACKOFF_MIN.mul_f64(1.5));
}
