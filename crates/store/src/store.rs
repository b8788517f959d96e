//! [`Store`], the handle through which a database is read and written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use crate::connection;
use crate::error::{OpenError, StoreError};
use crate::migrations::Migrations;

/// How long a caller waits for its turn.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// How many may read at once: more would not be faster, since every page is in the system's cache.
const MAX_READERS: usize = 4;

/// One database file. Cheap to clone: all clones are one.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    migrations: Vec<Migrations>,
    /// There from the moment that the file could be used.
    access: OnceLock<Access>,
    /// Idle read connections.
    readers: Mutex<Vec<Connection>>,
}

/// The ways into a file that can be used.
#[derive(Debug)]
struct Access {
    /// The one connection that writes. Its lock is fair, so writers take turns.
    writer: Arc<tokio::sync::Mutex<Connection>>,
    /// One permit for each reader at work.
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
        store.inner.open()?;
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

    /// Reads: all that `work` sees is of one moment. It must not write.
    ///
    /// Dropping the future does no harm.
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

    /// Reads on this thread, without a turn: for the start of a program.
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
    /// If the future is dropped before its turn, nothing is done; later, the transaction is
    /// completed all the same.
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

    /// Finds out whether the database can be used now.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.read(|db| Ok(db.pragma_query_value(None, "schema_version", |_| Ok(()))?))
            .await
    }

    /// A number that is another one whenever something was written, be it in another process or
    /// by another store of this one. What this store itself writes does not count.
    ///
    /// # Errors
    /// The database cannot be read now.
    pub async fn version_elsewhere(&self) -> Result<i64, StoreError> {
        let db = self.writer().await?;
        // It has to be the same connection every time, and one that sees all but its own writes.
        blocking(move || Ok(db.pragma_query_value(None, "data_version", |row| row.get(0))?)).await
    }

    /// Waits for the turn to write.
    async fn writer(&self) -> Result<OwnedMutexGuard<Connection>, StoreError> {
        let writer = Arc::clone(&self.access().await?.writer).lock_owned();
        let turn = tokio::time::timeout(MAX_WAIT, writer).await;
        turn.map_err(|_late| StoreError::Busy)
    }

    async fn access(&self) -> Result<&Access, StoreError> {
        if let Some(access) = self.inner.access.get() {
            return Ok(access);
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.access().map(drop)).await?;
        self.inner.access.get().ok_or(StoreError::Abandoned)
    }
}

impl Inner {
    /// Opens the file, unless another task did meanwhile.
    fn open(&self) -> Result<(), OpenError> {
        let writer = connection::open(&self.path, &self.migrations)?;
        self.access.get_or_init(|| Access {
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            reading: Arc::new(Semaphore::new(MAX_READERS)),
        });
        Ok(())
    }

    /// The ways into the file, which is opened if it was not yet.
    fn access(&self) -> Result<&Access, StoreError> {
        if let Some(access) = self.access.get() {
            return Ok(access);
        }
        self.open()?;
        self.access.get().ok_or(StoreError::Abandoned)
    }

    /// A connection to read from, a new one if there is none.
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

/// Waits for a permit, but not forever.
async fn in_time<T>(
    permit: impl Future<Output = Result<T, tokio::sync::AcquireError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(MAX_WAIT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_closed)) => Err(StoreError::Abandoned),
        Err(_late) => Err(StoreError::Busy),
    }
}

/// Does `work` where it may block.
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
