//! Limits how many programs start concurrently.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Starting programs for each core: most of a start is waiting for files, but not all of it.
const STARTS_PER_CORE: usize = 2;
/// Starting programs on the smallest machine.
const MIN_STARTS: usize = 4;

/// Limits how many programs start at the same time, lest a machine with few cores be so busy with
/// all of them that each misses its start-up timeout. Clones share one limit.
#[derive(Debug, Clone)]
pub struct StartSlots(Arc<Semaphore>);

impl Default for StartSlots {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self::new((STARTS_PER_CORE * cores).max(MIN_STARTS))
    }
}

impl StartSlots {
    /// Lets `starts` programs start at once, at least one.
    pub fn new(starts: usize) -> Self {
        Self(Arc::new(Semaphore::new(starts.max(1))))
    }

    /// Lets nothing start any more: the program is ending.
    pub fn close(&self) {
        self.0.close();
    }

    /// Waits for a slot, first come, first served. It is free again when the permit is dropped.
    /// `None` means that nothing starts any more.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}
