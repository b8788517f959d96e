//! [`Store`], the handle through which a database is read and written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use crate::connection;
use crate::error::{OpenError, StoreError};
use crate::migrations::Migrations;

/// How long a caller waits for a read permit or for the write lock.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long after a large file was opened it is checked for damage. The check reads the whole file
/// and would compete with what the file was opened for.
const CHECK_DELAY: Duration = if cfg!(test) {
    Duration::ZERO
} else {
    Duration::from_secs(10)
};

/// The maximum number of concurrent reads. More would not be faster, since every page is in the
/// system's cache.
const MAX_READERS: usize = 4;

/// One database file. Cheap to clone: all clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    migrations: Vec<Migrations>,
    /// Set when the file was opened successfully.
    access: OnceLock<Access>,
    /// The damage that was found after the file was opened.
    damage: OnceLock<Damage>,
    /// Idle read connections.
    readers: Mutex<Vec<Connection>>,
}

/// A finding of the check in the background, with the file that it is about.
#[derive(Debug)]
struct Damage {
    path: PathBuf,
    finding: String,
}

/// Access to an opened file: the write connection, and permits for reads.
#[derive(Debug)]
struct Access {
    /// The only write connection of this store. Its lock is fair (first in, first out).
    writer: Arc<tokio::sync::Mutex<Connection>>,
    /// One permit for each running read.
    reading: Arc<Semaphore>,
}

impl Store {
    /// Opens the database at `path`, creating the file and its directory as needed, and migrates
    /// the tables of these owners. This blocks: call it when the program starts.
    ///
    /// # Errors
    /// The file cannot be used, and was not changed. The error says what to do.
    pub fn open(path: &Path, migrations: &[Migrations]) -> Result<Self, OpenError> {
        let store = Self::at(path, migrations);
        Inner::open(&store.inner)?;
        Ok(store)
    }

    /// Like [`Self::open`], but opens the file when it is first needed. As long as that fails,
    /// every use of the store tries again and returns the error.
    pub fn at(path: &Path, migrations: &[Migrations]) -> Self {
        Self {
            inner: Arc::new(Inner {
                path: path.to_owned(),
                migrations: migrations.to_vec(),
                access: OnceLock::new(),
                damage: OnceLock::new(),
                readers: Mutex::default(),
            }),
        }
    }

    /// Checks whether the file can be used, before the first use; creates it as needed.
    ///
    /// An empty file is not opened for this: its tables are created by the first use.
    ///
    /// # Errors
    /// The file cannot be used, and was not changed. The error says what to do.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        let is_open = self.inner.access.get().is_some();
        if is_open || connection::create(&self.inner.path)? {
            return Ok(());
        }
        self.access().await.map(drop)
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Runs `work` in a read transaction, so that it sees a consistent snapshot. It must not write.
    ///
    /// If the future is dropped after `work` has started, `work` still runs to its end.
    ///
    /// # Errors
    /// The error that `work` returned, or why it could not run.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let access = self.access().await?;
        let permit = Arc::clone(&access.reading).acquire_owned();
        let permit = in_time(permit).await?;
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let mut db = inner.reader()?;
            let outcome = read(&mut db, work);
            inner.idle().push(db);
            drop(permit);
            outcome
        })
        .await
    }

    /// Like [`Self::read`], but blocks this thread, and needs no permit. For the start of a
    /// program.
    ///
    /// # Errors
    /// The error that `work` returned, or why it could not run.
    pub fn read_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E>,
        E: From<StoreError>,
    {
        self.inner.access()?;
        let mut db = self.inner.reader()?;
        let outcome = read(&mut db, work);
        self.inner.idle().push(db);
        outcome
    }

    /// Runs `work` in a write transaction: it is committed completely or, if `work` fails, rolled
    /// back.
    ///
    /// If the future is dropped while it waits for the write lock, nothing is written. If it is
    /// dropped later, the transaction still completes.
    ///
    /// # Errors
    /// The error that `work` returned, or why it could not run. Nothing was written then.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let mut db = self.writer().await?;
        blocking(move || write(&mut db, work)).await
    }

    /// Checks whether the database can be used now.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.read(|db| Ok(db.pragma_query_value(None, "schema_version", |_| Ok(()))?))
            .await
    }

    /// A version number that changes after writes of other processes, and of other stores in this
    /// process. Writes of this store do not change it.
    ///
    /// # Errors
    /// The database cannot be read now.
    pub async fn version_elsewhere(&self) -> Result<i64, StoreError> {
        let db = self.writer().await?;
        // `data_version` is only comparable on one connection, and ignores that connection's
        // writes: the write connection makes all writes of this store.
        blocking(move || Ok(db.pragma_query_value(None, "data_version", |row| row.get(0))?)).await
    }

    /// Waits for the write lock.
    async fn writer(&self) -> Result<OwnedMutexGuard<Connection>, StoreError> {
        let writer = Arc::clone(&self.access().await?.writer).lock_owned();
        let turn = tokio::time::timeout(LOCK_TIMEOUT, writer).await;
        turn.map_err(|_late| StoreError::Busy)
    }

    async fn access(&self) -> Result<&Access, StoreError> {
        if let Some(access) = self.inner.opened()? {
            return Ok(access);
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.access().map(drop)).await?;
        self.inner.access.get().ok_or(StoreError::Abandoned)
    }
}

impl Inner {
    /// Opens the file. If another task has opened it meanwhile, the connections of that task are
    /// kept.
    fn open(self: &Arc<Self>) -> Result<(), OpenError> {
        let writer = connection::open(&self.path, &self.migrations)?;
        let mut is_first = false;
        self.access.get_or_init(|| {
            is_first = true;
            Access {
                writer: Arc::new(tokio::sync::Mutex::new(writer)),
                reading: Arc::new(Semaphore::new(MAX_READERS)),
            }
        });
        if is_first && connection::is_large(&self.path) {
            self.check_in_background();
        }
        Ok(())
    }

    /// Looks for damage in a thread, which reads the whole file. If there is any, the file is not
    /// used any more.
    #[expect(
        clippy::disallowed_methods,
        reason = "the thread has nothing else to do, and there may be no runtime"
    )]
    fn check_in_background(self: &Arc<Self>) {
        let inner = Arc::downgrade(self);
        let path = self.path.clone();
        let check = move || {
            std::thread::sleep(CHECK_DELAY);
            if inner.strong_count() == 0 {
                return;
            }
            if let Err(OpenError::Damaged { path, finding }) = connection::check_file(&path)
                && let Some(inner) = inner.upgrade()
            {
                tracing::error!(path = %path.display(), finding, "the database is damaged");
                inner.damage.get_or_init(|| Damage { path, finding });
            }
        };
        let thread = std::thread::Builder::new().name("store-check".to_owned());
        if let Err(error) = thread.spawn(check) {
            tracing::warn!(%error, "cannot look for damage in the database");
        }
    }

    /// Access to the file, if it was opened.
    fn opened(&self) -> Result<Option<&Access>, StoreError> {
        match self.damage.get() {
            None => Ok(self.access.get()),
            Some(damage) => Err(StoreError::Closed(Box::new(OpenError::Damaged {
                path: damage.path.clone(),
                finding: damage.finding.clone(),
            }))),
        }
    }

    /// Access to the file, which is opened if necessary.
    fn access(self: &Arc<Self>) -> Result<&Access, StoreError> {
        if let Some(access) = self.opened()? {
            return Ok(access);
        }
        Self::open(self)?;
        self.access.get().ok_or(StoreError::Abandoned)
    }

    /// An idle read connection, or a new one.
    fn reader(&self) -> Result<Connection, StoreError> {
        let idle = self.idle().pop();
        match idle {
            Some(db) => Ok(db),
            None => Ok(connection::open_reader(&self.path)?),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A panic cannot leave the list half changed.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read<T, E: From<StoreError>>(
    db: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    // Dropping the transaction ends it; there is nothing to roll back.
    let moment = db.transaction().map_err(StoreError::from)?;
    work(&moment)
}

fn write<T, E: From<StoreError>>(
    db: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // `BEGIN IMMEDIATE`: a transaction that begins with a read fails if another connection writes
    // before its first write. With the write lock from the start, it never has to be retried.
    let transaction = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::from)?;
    let done = work(&transaction)?;
    transaction.commit().map_err(StoreError::from)?;
    Ok(done)
}

/// Waits for a permit, for [`LOCK_TIMEOUT`] at most.
async fn in_time<T>(
    permit: impl Future<Output = Result<T, tokio::sync::AcquireError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(LOCK_TIMEOUT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_closed)) => Err(StoreError::Abandoned),
        Err(_late) => Err(StoreError::Busy),
    }
}

/// Runs `work` on a blocking thread.
async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, "work on the database was given up");
            Err(StoreError::Abandoned.into())
        }
    }
}

#[cfg(test)]
mod tests;
