//! The handle through which everything is read and written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;

use crate::connection;
use crate::error::{OpenError, StoreError};
use crate::migrations::Migrations;

/// How long a caller waits for its turn.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How many may read at once: more would not be faster, since every page is in the system's cache.
const READERS: usize = 4;

/// One database file. Cheap to clone: all clones are one.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// The one connection that writes. Its lock is fair, so writers take turns.
    writer: Arc<tokio::sync::Mutex<Connection>>,
    /// One permit for each reader at work.
    reading: Arc<Semaphore>,
    /// Connections that nobody reads from at the moment.
    readers: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens the database at `path`, creating it and its folder as needed, and brings the tables
    /// of these owners up to date. This blocks: it is meant for the start of a program.
    ///
    /// # Errors
    /// The file cannot be used, and was left as it is. The error says what to do.
    pub fn open(path: &Path, migrations: &[Migrations]) -> Result<Self, OpenError> {
        let writer = connection::open(path, migrations)?;
        let inner = Inner {
            path: path.to_owned(),
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            reading: Arc::new(Semaphore::new(READERS)),
            readers: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
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
    /// What `work` returned, or why it could not be done.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let permit = Arc::clone(&self.inner.reading).acquire_owned();
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
    /// What `work` returned, or why it could not be done.
    pub fn read_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E>,
        E: From<StoreError>,
    {
        let mut db = self.inner.reader()?;
        let outcome = read(&mut db, work);
        self.inner.idle().push(db);
        outcome
    }

    /// Writes: `work` is done whole, or, if it fails, not at all.
    ///
    /// Dropping the future before it is its turn means that nothing is done; later, that it is done
    /// all the same.
    ///
    /// # Errors
    /// What `work` returned, or why it could not be done. Nothing was written then.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let writer = Arc::clone(&self.inner.writer).lock_owned();
        let turn = tokio::time::timeout(PATIENCE, writer).await;
        let mut db = turn.map_err(|_late| StoreError::Busy)?;
        blocking(move || write(&mut db, work)).await
    }
}

impl Inner {
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
    // Ends, with nothing to undo, when it is dropped.
    let moment = db.transaction().map_err(StoreError::from)?;
    work(&moment)
}

fn write<T, E: From<StoreError>>(
    db: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // Whoever begins by reading may find later that somebody else wrote in the meantime, and would
    // have to begin anew. Who has the lock from the start never has to.
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
    match tokio::time::timeout(PATIENCE, permit).await {
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
