//! Limits how many programs start concurrently.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Starting programs for each core: most of a start is waiting for files, but not all of it.
const STARTS_PER_CORE: usize = 2;
/// Starting programs on the smallest machine.
const MIN_STARTS: usize = 4;

/// Limits how many programs start at the same time. On a machine with few cores, too many would
/// slow each other down until they miss their timeouts. Clones share one limit.
#[derive(Debug, Clone)]
pub struct StartSlots(Arc<Semaphore>);

impl Default for StartSlots {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self::new((STARTS_PER_CORE * cores).max(MIN_STARTS))
    }
}

impl StartSlots {
    /// Allows `starts` concurrent starts, at least one.
    pub fn new(starts: usize) -> Self {
        Self(Arc::new(Semaphore::new(starts.max(1))))
    }

    /// Refuses further starts, because Plexus is shutting down.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether no program is started any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits for a slot, in the order of the calls. Dropping the permit frees the slot. `None`
    /// means that no program is started any more.
    pub(crate) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}
