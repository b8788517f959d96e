//! Exponential backoff with jitter: how long to wait before the next attempt to reconnect, or to
//! call a server again that sheds load.

use std::time::Duration;

/// The random part of a delay, so that servers that were lost together do not all reconnect at
/// once.
const JITTER_FRACTION: f64 = 0.5;

/// The delays between attempts: each about twice as long as the one before, up to a maximum.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// Delays from `min` to `max`.
    pub const fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max,
            failures: 0,
        }
    }

    /// The delay after one more failure. `random` is from 0 up to 1.
    pub fn next_delay(&mut self, random: f64) -> Duration {
        let doubled = self.min.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        // The longest delays vary, too.
        let longest = self.max.div_f64(1.0 + JITTER_FRACTION);
        doubled
            .min(longest)
            .mul_f64(1.0 + JITTER_FRACTION * random.clamp(0.0, 1.0))
    }

    /// The next delay is the shortest again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// A random number from 0 up to 1 for [`Backoff::next_delay`]; 0.5 where the system gives none.
pub fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(500);
    const MAX: Duration = Duration::from_mins(1);

    #[test]
    fn delays_double_up_to_the_maximum() {
        let mut backoff = Backoff::new(MIN, MAX);
        let delays: Vec<_> = (0..9).map(|_| backoff.next_delay(0.0)).collect();
        let seconds = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 40.0];
        assert_eq!(delays, seconds.map(Duration::from_secs_f64));
        assert_eq!(backoff.next_delay(1.0), MAX);
        backoff.reset();
        assert_eq!(backoff.next_delay(0.0), MIN);
    }

    #[test]
    fn jitter_prolongs_a_delay_by_up_to_half() {
        let delay = |random| Backoff::new(MIN, MAX).next_delay(random);
        assert_eq!(delay(0.0), MIN);
        assert_eq!(delay(1.0), MIN.mul_f64(1.5));
        assert!(delay(0.5) > MIN && delay(0.5) < MIN.mul_f64(1.5));
        // A source of randomness that misbehaves does not matter.
        assert_eq!(delay(-7.0), MIN);
        assert_eq!(delay(f64::MAX), MIN.mul_f64(1.5));
    }

    #[test]
    fn no_number_of_failures_overflows() {
        let mut backoff = Backoff::new(MIN, MAX);
        backoff.failures = u32::MAX;
        assert_eq!(backoff.next_delay(1.0), MAX);
    }

    #[test]
    fn random_numbers_are_within_range() {
        for _ in 0..100 {
            assert!((0.0..=1.0).contains(&random()));
        }
    }
}
