//! Noticing that files change.

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

/// How long files must have been left alone. Editors write several times, and some write in place.
const QUIET: Duration = Duration::from_millis(200);
/// A file that never rests is read all the same after this many changes in a row.
const MAX_CHANGES: usize = 50;

/// The system cannot watch files.
#[derive(Debug, thiserror::Error)]
#[error("configuration files cannot be watched, changes need a restart")]
pub struct WatchError(#[from] notify::Error);

/// Reads the configuration again whenever one of its files is written, made, moved or removed.
pub struct Watcher {
    locations: Locations,
    environment: Environment,
    /// Holds at most one signal: that there were several changes does not matter.
    signal: Arc<Notify>,
    /// A change was noticed, but not yet reported.
    pending: bool,
    relevant: Arc<Mutex<Relevant>>,
    watched: BTreeSet<PathBuf>,
    system: RecommendedWatcher,
}

impl Watcher {
    /// Reads the configuration, and begins to watch it.
    ///
    /// # Errors
    /// The system offers no way to watch files, or has run out of it.
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
        // Which files there are is known only from reading them.
        let mut loaded = watcher.load().await;
        if watcher.watch(&loaded.files) {
            loaded = watcher.load().await;
            watcher.watch_and_remind(&loaded.files);
        }
        Ok((loaded, watcher))
    }

    /// Waits for a change, and until files are left alone for a moment; then reads all of them.
    ///
    /// A file that cannot be understood is read once more a moment later, since somebody may be
    /// writing it. Dropping the future loses nothing: the next one reports the change.
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
        for _ in 0..MAX_CHANGES {
            if timeout(QUIET, self.signal.notified()).await.is_err() {
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

    /// As [`Watcher::watch`]; what may have changed in a directory before it was watched is found
    /// by another look.
    fn watch_and_remind(&mut self, files: &[PathBuf]) {
        if self.watch(files) {
            self.signal.notify_one();
        }
    }

    /// Watches the directories of `files`, because a file that is replaced is another one. Returns
    /// whether there is a new one among them.
    fn watch(&mut self, files: &[PathBuf]) -> bool {
        let relevant = Relevant::new(files);
        let wanted = relevant.directories();
        *self.relevant.lock().unwrap_or_else(PoisonError::into_inner) = relevant;
        for directory in self.watched.difference(&wanted) {
            // It may be gone, and its watch with it.
            self.system.unwatch(directory).ok();
        }
        // A known directory may be another one by now, so it is watched again.
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

/// What the system calls, on a thread of its own.
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
            // Something was missed.
            Err(_) => true,
        };
        if matters {
            signal.notify_one();
        }
    }
}

/// Our own reading is no change.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
