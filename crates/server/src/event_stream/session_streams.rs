//! The streams of the requests of one session.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{EventStream, Replay};
use crate::lock::lock;
use crate::replay_budget::ReplayShare;

/// The most streams of one session that are kept for a client that may come back.
const MAX_STREAMS: usize = 256;

/// The streams of the requests of one session, by number.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams {
    open: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    last: AtomicU64,
}

impl SessionStreams {
    /// A stream for a request whose response waits for the first message, and its number.
    pub(crate) fn open(
        streams: &Arc<Self>,
        replay: Replay,
        share: &Arc<ReplayShare>,
    ) -> (u64, Arc<EventStream>) {
        let number = streams.last.fetch_add(1, Ordering::Relaxed) + 1;
        let home = (Arc::downgrade(streams), number);
        let stream = EventStream::new(replay, share, Some(home));
        let mut open = lock(&streams.open);
        let mut ended = BTreeMap::new();
        if open.len() >= MAX_STREAMS {
            ended = open
                .extract_if(.., |_, stream| stream.has_ended())
                .collect();
        }
        open.insert(number, Arc::clone(&stream));
        drop(open);
        drop(ended);
        (number, stream)
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<EventStream>> {
        lock(&self.open).get(&number).cloned()
    }

    pub(crate) fn forget(&self, number: u64) {
        let forgotten = lock(&self.open).remove(&number);
        drop(forgotten);
    }

    /// Forgets streams that ended long ago.
    pub(crate) fn sweep(&self) {
        let stale: Vec<_> = lock(&self.open)
            .extract_if(.., |_, stream| stream.is_stale())
            .collect();
        drop(stale);
    }
}
