//! Taking in a long body in one go.
//!
//! hyper hands on one piece of a body each time it is polled, and between two of them every other
//! connection has its turn. Where many long bodies come at a time, the memory of all of them is in
//! use, and what was just put together is far again when it is read and when it is sent back. So a
//! connection that takes in much is polled on: one body after the other, in memory that is near.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

/// What comes at once of a body that is long.
const MUCH: usize = 16 * 1024;
/// How often a connection is polled before others have their turn, whatever there is to take in.
const TURNS: usize = 32;

/// How much a connection has taken in since somebody looked. Only the task of the connection uses
/// it.
#[derive(Debug, Default)]
pub(super) struct Intake(AtomicUsize);

impl Intake {
    /// So many bytes came.
    pub(super) fn note(&self, bytes: usize) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + bytes, Ordering::Relaxed);
    }

    /// Polls, and again while much comes, until nothing more does.
    pub(super) fn poll_on<T>(&self, mut poll: impl FnMut() -> Poll<T>) -> Poll<T> {
        let mut enough = MUCH;
        for _ in 1..TURNS {
            self.0.store(0, Ordering::Relaxed);
            let polled = poll();
            if polled.is_ready() || self.0.load(Ordering::Relaxed) < enough {
                return polled;
            }
            // The last piece may be short, and what follows from it is not for later either.
            enough = 1;
        }
        poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a connection is polled to which this comes.
    fn polls(pieces: &[usize]) -> usize {
        let intake = Intake::default();
        let mut polls = 0;
        let polled = intake.poll_on(|| {
            intake.note(pieces.get(polls).copied().unwrap_or(0));
            polls += 1;
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        polls
    }

    #[test]
    fn a_long_body_is_taken_in_to_its_end() {
        assert_eq!(polls(&[4 * MUCH, 4 * MUCH, 3]), 4);
        assert_eq!(polls(&[MUCH]), 2);
    }

    #[test]
    fn what_is_short_is_polled_once() {
        assert_eq!(polls(&[]), 1);
        assert_eq!(polls(&[MUCH - 1, MUCH]), 1);
    }

    #[test]
    fn nobody_has_every_turn() {
        assert_eq!(polls(&[MUCH; 2 * TURNS]), TURNS);
    }

    #[test]
    fn what_is_done_is_not_polled_again() {
        let intake = Intake::default();
        let mut polls = 0;
        let polled = intake.poll_on(|| {
            intake.note(MUCH);
            polls += 1;
            Poll::Ready(polls)
        });
        assert_eq!(polled, Poll::Ready(1));
    }
}
