//! The life of the connection to one server, as a pure state machine:
//! `Idle → Connecting → Ready → Backoff → Connecting`.
//!
//! It does no I/O and has no clock and no randomness of its own: the supervisor passes in each input
//! with the current time, and carries out the returned action.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// The delays between attempts to reconnect.
const RECONNECT_BACKOFF_MIN: Duration = Duration::from_millis(500);
const RECONNECT_BACKOFF_MAX: Duration = Duration::from_mins(1);
/// The delays between starts of a server that is crash-looping.
const CRASH_LOOP_BACKOFF_MIN: Duration = Duration::from_mins(1);
const CRASH_LOOP_BACKOFF_MAX: Duration = Duration::from_mins(10);
/// A process that ends within this time without having answered a request has crashed at its start.
pub(super) const CRASH_WINDOW: Duration = Duration::from_secs(10);
/// After this many such starts in a row, a server is crash-looping.
pub(super) const CRASH_LOOP_STARTS: u32 = 5;

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no connection, and no attempt is planned.
    Idle(Idle),
    /// An attempt is under way.
    Connecting,
    /// The handshake is done and the lists were read. `since` is when its process started, or else
    /// when it was connected.
    Ready { since: Instant, is_process: bool },
    /// The next attempt is made then.
    Backoff { until: Instant },
}

/// Why no attempt is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// Nothing has needed the server yet.
    New,
    /// It failed or was lost, and its configuration says that it is not restarted.
    Failed,
    /// It requires credentials. Another attempt would fail in the same way.
    NeedsAuth,
    /// A user disconnected it.
    Disconnected,
}

/// An input of the state machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The server is to be connected in the background.
    Start,
    /// A call needs the server.
    Call,
    /// A user wants the server connected, in any state.
    Connect,
    /// A user wants the server disconnected.
    Disconnect,
    /// The attempt succeeded. `started` is when the server's process was started, if it is one.
    Connected { started: Option<Instant> },
    /// The attempt failed. If its process ended by itself, `crashed_after` is how long it ran. An
    /// attempt restarts a server that ends on `server/discover`; only the last process counts.
    Failed {
        needs_auth: bool,
        crashed_after: Option<Duration>,
    },
    /// The connection ended by itself. `answered` says whether a request was answered on it.
    Lost { answered: bool },
    /// The server has lost the session; `answered` is as in [`Self::Lost`].
    SessionLost { answered: bool },
    /// The time that [`Lifecycle::deadline`] named has come.
    DeadlinePassed,
}

/// The action that the supervisor must take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    /// Begin an attempt.
    Connect,
    /// Give up the attempt, or end the connection.
    Disconnect,
}

/// The state machine.
#[derive(Debug)]
pub(super) struct Lifecycle {
    auto_restart: bool,
    phase: Phase,
    reconnect: Backoff,
    crash_loop: Backoff,
    /// Starts in a row that ended within [`CRASH_WINDOW`] without an answered request. Two starts of
    /// one attempt count as one.
    crashes: u32,
}

impl Lifecycle {
    pub(super) fn new(auto_restart: bool) -> Self {
        Self {
            auto_restart,
            phase: Phase::Idle(Idle::New),
            reconnect: Backoff::new(RECONNECT_BACKOFF_MIN, RECONNECT_BACKOFF_MAX),
            crash_loop: Backoff::new(CRASH_LOOP_BACKOFF_MIN, CRASH_LOOP_BACKOFF_MAX),
            crashes: 0,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether calls are refused instead of starting the server once more.
    pub(super) fn is_crash_looping(&self) -> bool {
        self.crashes >= CRASH_LOOP_STARTS
    }

    /// When [`Input::DeadlinePassed`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Backoff { until } => Some(until),
            Phase::Idle(_) | Phase::Connecting | Phase::Ready { .. } => None,
        }
    }

    /// Takes note of what happened at `now`. `random` is from 0 up to 1, for the backoff's jitter.
    /// An input that does not fit the phase changes nothing: it was overtaken by another.
    pub(super) fn handle(&mut self, now: Instant, random: f64, input: Input) -> Action {
        match (self.phase, input) {
            (Phase::Idle(Idle::New), Input::Start)
            | (Phase::Idle(Idle::New | Idle::NeedsAuth), Input::Call) => self.connect(),
            (Phase::Backoff { .. }, Input::Call) if !self.is_crash_looping() => self.connect(),
            (Phase::Backoff { until }, Input::DeadlinePassed) if until <= now => self.connect(),
            (Phase::Idle(_) | Phase::Backoff { .. }, Input::Connect)
            | (Phase::Ready { .. }, Input::SessionLost { answered: true }) => {
                self.reset_failures();
                self.connect()
            }
            (_, Input::Disconnect) => {
                let had = matches!(self.phase, Phase::Connecting | Phase::Ready { .. });
                self.reset_failures();
                self.phase = Phase::Idle(Idle::Disconnected);
                if had {
                    Action::Disconnect
                } else {
                    Action::Nothing
                }
            }
            (Phase::Connecting, Input::Connected { started }) => {
                self.phase = Phase::Ready {
                    since: started.unwrap_or(now),
                    is_process: started.is_some(),
                };
                Action::Nothing
            }
            (
                Phase::Connecting,
                Input::Failed {
                    needs_auth,
                    crashed_after,
                },
            ) => {
                if needs_auth {
                    self.phase = Phase::Idle(Idle::NeedsAuth);
                } else {
                    self.count_crash(crashed_after);
                    self.enter_backoff(now, random);
                }
                Action::Nothing
            }
            (Phase::Ready { since, is_process }, Input::Lost { answered }) => {
                let lasted = now.duration_since(since);
                if answered || lasted >= CRASH_WINDOW {
                    self.reset_failures();
                } else {
                    self.count_crash(is_process.then_some(lasted));
                }
                self.enter_backoff(now, random);
                Action::Nothing
            }
            // A server that loses each session at once is reconnected with backoff. A call in the
            // meantime makes one attempt at once. The server did not fail, so its session is renewed
            // without `auto_restart`, too.
            (Phase::Ready { .. }, Input::SessionLost { answered: false }) => {
                let until = now + self.reconnect.next_delay(random);
                self.phase = Phase::Backoff { until };
                Action::Nothing
            }
            _ => Action::Nothing,
        }
    }

    fn connect(&mut self) -> Action {
        self.phase = Phase::Connecting;
        Action::Connect
    }

    /// Counts starts in a row that ended within [`CRASH_WINDOW`] without an answered request. Any
    /// other failure ends the row, such as a process that hangs. The server still backs off.
    fn count_crash(&mut self, crashed_after: Option<Duration>) {
        self.crashes = match crashed_after {
            Some(lasted) if lasted < CRASH_WINDOW => self.crashes.saturating_add(1),
            Some(_) | None => 0,
        };
    }

    /// Resets the failure counters: the next failure counts as the first.
    fn reset_failures(&mut self) {
        self.crashes = 0;
        self.reconnect.reset();
        self.crash_loop.reset();
    }

    fn enter_backoff(&mut self, now: Instant, random: f64) {
        if !self.auto_restart {
            self.phase = Phase::Idle(Idle::Failed);
            return;
        }
        let delay = if self.is_crash_looping() {
            self.crash_loop.next_delay(random)
        } else {
            self.reconnect.next_delay(random)
        };
        self.phase = Phase::Backoff { until: now + delay };
    }
}

#[cfg(test)]
mod tests;
