//! How many requests children of this process work on.
//!
//! Most servers write each answer by itself. Where many are due, to be woken for every one of them
//! costs more than to read them, and costs the server more than to write them: who has a thread of
//! its own does better to wait a little, and read several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

static SEEN: AtomicUsize = AtomicUsize::new(0);

/// A child was given a request, and with it has so many to answer.
pub(crate) fn seen(waiting: usize) {
    SEEN.store(waiting, Ordering::Relaxed);
}

/// How many requests the child had to answer that was last given one; none, if no child was given
/// one since this was asked before.
pub fn take() -> usize {
    SEEN.swap(0, Ordering::Relaxed)
}
