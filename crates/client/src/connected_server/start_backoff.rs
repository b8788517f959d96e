//! The backoff of the starts of one principal's process.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// The delay between two starts, which doubles with each start that comes soon after the one before.
const START_BACKOFF_MIN: Duration = Duration::from_millis(500);
const START_BACKOFF_MAX: Duration = Duration::from_mins(1);
/// A process that is started again no sooner than this resets the backoff.
const GOOD_PROCESS_MIN: Duration = Duration::from_secs(10);

/// Limits how often a process that keeps ending is started.
#[derive(Debug)]
pub(super) struct StartBackoff {
    backoff: Backoff,
    /// The last start, and the delay until the next one.
    last: Option<(Instant, Duration)>,
}

impl Default for StartBackoff {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(START_BACKOFF_MIN, START_BACKOFF_MAX),
            last: None,
        }
    }
}

impl StartBackoff {
    /// How long no process may be started.
    pub(super) fn remaining(&self, now: Instant) -> Duration {
        let (start, delay) = self.last.unwrap_or((now, Duration::ZERO));
        delay.saturating_sub(now.saturating_duration_since(start))
    }

    /// Records a start. `random` is from 0 up to 1.
    pub(super) fn started(&mut self, now: Instant, random: f64) {
        if let Some((start, delay)) = self.last
            && now.saturating_duration_since(start) >= GOOD_PROCESS_MIN.max(2 * delay)
        {
            self.backoff.reset();
        }
        self.last = Some((now, self.backoff.next_delay(random)));
    }

    /// The last process has answered a call: the next one may be started at once.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_in_quick_succession_are_delayed_more_and_more() {
        let mut starts = StartBackoff::default();
        let mut now = Instant::now();
        assert_eq!(starts.remaining(now), Duration::ZERO);
        for delay in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 40.0] {
            starts.started(now, 0.0);
            assert_eq!(starts.remaining(now), Duration::from_secs_f64(delay));
            now += starts.remaining(now);
            assert_eq!(starts.remaining(now), Duration::ZERO);
        }
    }

    #[test]
    fn a_reset_permits_a_start_at_once() {
        let mut starts = StartBackoff::default();
        let now = Instant::now();
        starts.started(now, 0.0);
        starts.started(now + START_BACKOFF_MIN, 0.0);
        starts.reset();
        assert_eq!(starts.remaining(now + START_BACKOFF_MIN), Duration::ZERO);
        starts.started(now + START_BACKOFF_MIN, 0.0);
        let remaining = starts.remaining(now + START_BACKOFF_MIN);
        assert_eq!(remaining, START_BACKOFF_MIN);
    }

    #[test]
    fn a_process_that_ran_long_resets_the_backoff() {
        let mut starts = StartBackoff::default();
        let now = Instant::now();
        starts.started(now, 0.0);
        starts.started(now + START_BACKOFF_MIN, 0.0);
        let later = now + START_BACKOFF_MIN + GOOD_PROCESS_MIN;
        starts.started(later, 0.0);
        assert_eq!(starts.remaining(later), START_BACKOFF_MIN);
    }
}
