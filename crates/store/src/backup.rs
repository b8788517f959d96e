//! Backups of a database while it is in use.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::store::Store;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The database could not be read, or the copy not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file exists already, and is not overwritten.
    #[error("{} exists already; name another file", .0.display())]
    Exists(PathBuf),
    /// The finished copy could not be renamed to the requested file.
    #[error("cannot write {}", path.display())]
    Write {
        /// The requested file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Store {
    /// Writes a consistent copy of the database to a new file at `path`. Other connections can read
    /// and write meanwhile.
    ///
    /// `path` is created only when the copy is complete, even if the future is dropped.
    ///
    /// # Errors
    /// The database cannot be read, or `path` exists already or cannot be written.
    pub async fn backup(&self, path: &Path) -> Result<(), BackupError> {
        let path = path.to_owned();
        self.read(move |db| back_up(db, &path)).await
    }
}

fn back_up(db: &Connection, path: &Path) -> Result<(), BackupError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
        _ => BackupError::Write {
            path: path.to_owned(),
            source,
        },
    };
    if path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let unfinished = tempfile::Builder::new()
        .prefix(".plexus-backup-")
        .tempfile_in(folder)
        .map_err(failed)?;
    copy(db, unfinished.path())?;
    unfinished.as_file().sync_all().map_err(failed)?;
    let finished = unfinished.persist_noclobber(path);
    finished.map_err(|error| failed(error.error))?;
    Ok(())
}

fn copy(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(path, flags)?;
    // All pages in one step: a reader blocks no writer, and a copy in several steps would start
    // again whenever another process writes between them.
    match Backup::new(db, &mut copy)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::Busy),
    }
}

#[cfg(test)]
mod tests;
