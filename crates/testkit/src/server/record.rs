//! A record of the messages that a server received. Tests can inspect it or wait for messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::timeout::within;

/// All received messages, in order. Clones share them.
#[derive(Debug)]
pub(super) struct Record<T> {
    entries: Arc<Mutex<Vec<Entry<T>>>>,
    grown: watch::Sender<()>,
    /// True when no more messages will arrive.
    over: watch::Sender<bool>,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    taken: bool,
}

impl<T> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self {
            entries: Arc::clone(&self.entries),
            grown: self.grown.clone(),
            over: self.over.clone(),
        }
    }
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self {
            entries: Arc::default(),
            grown: watch::Sender::default(),
            over: watch::Sender::default(),
        }
    }
}

impl<T: Clone> Record<T> {
    pub(super) fn add(&self, value: T) {
        self.lock().push(Entry {
            value,
            taken: false,
        });
        self.grown.send_replace(());
    }

    pub(super) fn finish(&self) {
        self.over.send_replace(true);
        self.grown.send_replace(());
    }

    /// Waits until no more messages will arrive.
    pub(super) async fn finished(&self, what: &str) {
        let mut over = self.over.subscribe();
        let waited = within(what, over.wait_for(|over| *over)).await;
        drop(waited);
    }

    pub(super) fn all(&self) -> Vec<T> {
        self.lock()
            .iter()
            .map(|entry| entry.value.clone())
            .collect()
    }

    pub(super) fn is_finished(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits for the first matching entry that was not returned before.
    pub(super) async fn take(&self, what: &str, is_wanted: impl Fn(&T) -> bool) -> T {
        let taken = within(what, self.take_or_end(is_wanted)).await;
        taken.unwrap_or_else(|| panic!("the server ended without being sent {what}"))
    }

    /// Like `take`, but returns `None` if no more messages will arrive.
    pub(super) async fn take_or_end(&self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut grown = self.grown.subscribe();
        loop {
            let finished = self.is_finished();
            {
                let mut entries = self.lock();
                let wanted = |entry: &&mut Entry<T>| !entry.taken && is_wanted(&entry.value);
                if let Some(entry) = entries.iter_mut().find(wanted) {
                    entry.taken = true;
                    return Some(entry.value.clone());
                }
            }
            if finished {
                return None;
            }
            // The sender is owned by this record.
            grown.changed().await.ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
