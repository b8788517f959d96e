//! The processes that one attempt to connect starts.

use std::sync::Mutex;

use tokio::time::Instant;

use crate::lock::lock;

/// When an attempt to connect started its last process: a server that ends on `server/discover` is
/// started a second time.
#[derive(Debug, Default)]
pub(crate) struct Starts(Mutex<Option<Instant>>);

impl Starts {
    /// Records a start. The process before it has ended.
    pub(super) fn add(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    /// Forgets the starts so far, because their processes did not end by themselves.
    pub(crate) fn clear(&self) {
        *lock(&self.0) = None;
    }

    /// When the last process was started.
    pub(crate) fn last(&self) -> Option<Instant> {
        *lock(&self.0)
    }
}
