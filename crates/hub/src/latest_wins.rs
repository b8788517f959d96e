//! Orders work that runs on any thread so that an older result never overwrites a newer one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Hands out increasing tickets, and skips work whose ticket is older than the last that ran.
#[derive(Debug, Default)]
pub(crate) struct LatestWins {
    last_ticket: AtomicU64,
    /// The highest ticket whose work has run.
    last_run: Mutex<u64>,
}

impl LatestWins {
    /// Takes the next ticket.
    pub(crate) fn ticket(&self) -> u64 {
        self.last_ticket.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs `work`, unless work with a later ticket has run.
    pub(crate) fn run_unless_newer<T>(&self, ticket: u64, work: impl FnOnce() -> T) -> Option<T> {
        let mut last_run = self.last_run.lock().unwrap_or_else(PoisonError::into_inner);
        (ticket > *last_run).then(|| {
            *last_run = ticket;
            work()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_ticket_does_not_run() {
        let latest = LatestWins::default();
        let (first, second, third) = (latest.ticket(), latest.ticket(), latest.ticket());
        assert_eq!(latest.run_unless_newer(second, || "second"), Some("second"));
        assert_eq!(latest.run_unless_newer(first, || "first"), None);
        assert_eq!(latest.run_unless_newer(third, || "third"), Some("third"));
    }
}
