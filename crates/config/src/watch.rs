//! Watching of configuration files.

mod relevant;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use self::relevant::Relevant;
use super::load::{Loaded, load};
use super::locations::Locations;

/// Looks up a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Debounce interval: files are read when they have not changed for this long. Editors write
/// several times, and some write in place.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(200);
/// After this many changes in a row, files are read although they still change.
const MAX_DEBOUNCED_CHANGES: usize = 50;

/// The system cannot watch files.
#[derive(Debug, thiserror::Error)]
#[error("configuration files cannot be watched, changes need a restart")]
pub struct WatchError(#[from] notify::Error);

/// Loads the configuration again whenever one of its files is written, created, moved or removed.
pub struct Watcher {
    locations: Locations,
    environment: Environment,
    /// Holds at most one signal, because the number of changes does not matter.
    signal: Arc<Notify>,
    /// Whether a change was noticed but not yet reported.
    pending: bool,
    relevant: Arc<Mutex<Relevant>>,
    watched: BTreeSet<PathBuf>,
    system: RecommendedWatcher,
}

impl Watcher {
    /// Loads the configuration, and starts to watch it.
    ///
    /// # Errors
    /// The system cannot watch files, or has no watches left.
    pub async fn start(
        locations: Locations,
        environment: Environment,
    ) -> Result<(Loaded, Self), WatchError> {
        let signal = Arc::new(Notify::new());
        let relevant = Arc::new(Mutex::new(Relevant::default()));
        let system = notify::recommended_watcher(handler(&signal, &relevant))?;
        let mut watcher = Self {
            locations,
            environment,
            signal,
            pending: false,
            relevant,
            watched: BTreeSet::new(),
            system,
        };
        // The list of files is known only after loading.
        let mut loaded = watcher.load().await;
        if watcher.watch(&loaded.files) {
            loaded = watcher.load().await;
            watcher.watch_and_remind(&loaded.files);
        }
        Ok((loaded, watcher))
    }

    /// Waits for a change, until files have not changed for the debounce interval; then loads all
    /// of them.
    ///
    /// A file that cannot be parsed is read again a moment later, because it may be half-written.
    /// Cancel safe: the next call reports the change.
    pub async fn changed(&mut self) -> Loaded {
        if !self.pending {
            self.signal.notified().await;
            self.pending = true;
        }
        self.quiet().await;
        let mut loaded = self.load().await;
        if loaded.has_broken_files() {
            self.quiet().await;
            loaded = self.load().await;
        }
        self.pending = false;
        self.watch_and_remind(&loaded.files);
        loaded
    }

    async fn quiet(&self) {
        for _ in 0..MAX_DEBOUNCED_CHANGES {
            if timeout(DEBOUNCE_INTERVAL, self.signal.notified())
                .await
                .is_err()
            {
                return;
            }
        }
    }

    async fn load(&self) -> Loaded {
        let locations = self.locations.clone();
        let environment = Arc::clone(&self.environment);
        let reading = tokio::task::spawn_blocking(move || load(&locations, &*environment));
        match reading.await {
            Ok(loaded) => loaded,
            // The runtime is shutting down, or an environment lookup panicked.
            Err(_) => load(&self.locations, &*self.environment),
        }
    }

    /// As [`Watcher::watch`]. If there is a new directory, signals a change, because it may have
    /// changed before it was watched.
    fn watch_and_remind(&mut self, files: &[PathBuf]) {
        if self.watch(files) {
            self.signal.notify_one();
        }
    }

    /// Watches the directories of `files`, because a replaced file has another inode. Returns
    /// whether there is a new one among them.
    fn watch(&mut self, files: &[PathBuf]) -> bool {
        let relevant = Relevant::new(files);
        let wanted = relevant.directories();
        *self.relevant.lock().unwrap_or_else(PoisonError::into_inner) = relevant;
        for directory in self.watched.difference(&wanted) {
            // The directory may be gone, and its watch with it.
            self.system.unwatch(directory).ok();
        }
        // A known directory may have been replaced, so it is watched again.
        let watched: BTreeSet<_> = wanted
            .into_iter()
            .filter(|directory| {
                let watched = self.system.watch(directory, RecursiveMode::NonRecursive);
                if let Err(error) = &watched {
                    let directory = directory.display();
                    tracing::warn!(%directory, %error, "cannot watch configuration for changes");
                }
                watched.is_ok()
            })
            .collect();
        let has_new = !watched.is_subset(&self.watched);
        self.watched = watched;
        has_new
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("locations", &self.locations)
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

/// The event handler, which the system calls on its own thread.
fn handler(
    signal: &Arc<Notify>,
    relevant: &Arc<Mutex<Relevant>>,
) -> impl Fn(notify::Result<notify::Event>) + Send + 'static {
    let (signal, relevant) = (Arc::clone(signal), Arc::clone(relevant));
    move |event| {
        let matters = match event {
            Ok(event) => {
                let relevant = relevant.lock().unwrap_or_else(PoisonError::into_inner);
                is_change(event.kind)
                    && (event.paths.is_empty() || event.paths.iter().any(|path| relevant.has(path)))
            }
            // Events were lost.
            Err(_) => true,
        };
        if matters {
            signal.notify_one();
        }
    }
}

/// Whether an event is a change. Our own reading is not.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
