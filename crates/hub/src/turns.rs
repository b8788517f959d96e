//! Work that is done at some time, on any thread, of which the newest is to prevail.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Hands out turns, and sees to it that nobody does his work after a later one did.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    given: AtomicU64,
    /// The latest that was taken.
    taken: Mutex<u64>,
}

impl Turns {
    /// The next turn.
    pub(crate) fn next(&self) -> u64 {
        self.given.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Does `work` in its turn, unless a later one was taken.
    pub(crate) fn unless_newer<T>(&self, turn: u64, work: impl FnOnce() -> T) -> Option<T> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        (turn > *taken).then(|| {
            *taken = turn;
            work()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_too_late_has_nothing_to_do() {
        let turns = Turns::default();
        let (first, second, third) = (turns.next(), turns.next(), turns.next());
        assert_eq!(turns.unless_newer(second, || "second"), Some("second"));
        assert_eq!(turns.unless_newer(first, || "first"), None);
        assert_eq!(turns.unless_newer(third, || "third"), Some("third"));
    }
}
