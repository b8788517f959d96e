//! Answers that are ready at the same time go out one right after the other.
//!
//! To write to a client that sleeps is to wake it, which is work for us as well. While we are at work
//! on the next request, a client of many connections is done with the answer before and goes back to
//! sleep, to be woken by the next one. So where there are several requests to answer, an answer waits
//! until all that can run has run, which is when the others are ready, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// One of so many answers waits for others though the last one that did was alone.
const TRIAL: u64 = 64;

/// Whether answers have company. What threads see of each other late or not at all costs them a
/// wake-up, or saves them one.
#[derive(Debug, Default)]
pub(super) struct Company {
    answers: AtomicU64,
    waiting: AtomicUsize,
    is_expected: AtomicBool,
}

/// The place of an answer that waits, until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    company: Arc<Company>,
    /// How many answers there were before, this one included.
    number: u64,
    /// Whether others waited already.
    is_joining: bool,
}

impl Company {
    /// An answer is ready. If it should wait, it does so as long as it keeps the place.
    pub(super) fn expect(self: &Arc<Self>) -> Option<Place> {
        let number = self.answers.fetch_add(1, Ordering::Relaxed) + 1;
        let is_trial = number.is_multiple_of(TRIAL);
        (is_trial || self.is_expected.load(Ordering::Relaxed)).then(|| Place {
            number,
            is_joining: self.waiting.fetch_add(1, Ordering::Relaxed) > 0,
            company: Arc::clone(self),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let company = &self.company;
        company.waiting.fetch_sub(1, Ordering::Relaxed);
        let is_followed = company.answers.load(Ordering::Relaxed) != self.number;
        let had_company = self.is_joining || is_followed;
        company.is_expected.store(had_company, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_answers(count: u64) -> Arc<Company> {
        let company = Arc::<Company>::default();
        for _ in 0..count {
            assert!(company.expect().is_none());
        }
        company
    }

    /// After a trial with company.
    fn expecting() -> Arc<Company> {
        let company = after_answers(TRIAL - 1);
        let trial = company.expect();
        assert!(trial.is_some());
        assert!(company.expect().is_none());
        drop(trial);
        company
    }

    #[test]
    fn who_is_alone_waits_now_and_then_only() {
        let company = after_answers(TRIAL - 1);
        drop(company.expect().expect("a trial"));
        for _ in 1..TRIAL {
            assert!(company.expect().is_none());
        }
        assert!(company.expect().is_some());
    }

    #[test]
    fn answers_in_between_are_company() {
        assert!(expecting().expect().is_some());
    }

    #[test]
    fn all_of_a_crowd_have_company_even_the_last() {
        let company = expecting();
        for _ in 0..3 {
            let crowd: Vec<_> = (0..4).map(|_| company.expect().expect("company")).collect();
            drop(crowd);
        }
    }

    #[test]
    fn who_waited_for_nobody_waits_no_more() {
        let company = expecting();
        drop(company.expect().expect("company"));
        assert!(company.expect().is_none());
    }
}
