//! Errors of a database. Each text says what to do.

use std::io;
use std::path::PathBuf;

use rusqlite::{ErrorCode, ffi};

/// Why a read or a write failed. In any case, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another connection keeps writing. A later try may succeed.
    #[error("the database is busy with other work; try again later")]
    Busy,
    /// The disk is full.
    #[error("the disk is full, so nothing was written; make room and try again")]
    Full,
    /// The file or its folder may not be written.
    #[error("the database is read-only; check the permissions of its file and folder")]
    ReadOnly,
    /// The file is damaged.
    #[error("the database file is damaged; stop Plexus and put a backup in its place")]
    Damaged,
    /// The disk failed, or the operating system refused access.
    #[error(
        "the database file cannot be accessed; check its permissions, those of its folder, and the \
         disk that they are on"
    )]
    Disk(#[source] rusqlite::Error),
    /// Any other error of SQLite, which is a bug in Plexus.
    #[error("the database refused a statement")]
    Statement(#[source] rusqlite::Error),
    /// The file could not be opened. Every use tries again.
    #[error("{}", because(.0))]
    Closed(Box<OpenError>),
    /// The work panicked, or the program is about to end.
    #[error("the work on the database was given up")]
    Abandoned,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            // The shared-memory file beside the database needs space as well.
            Some(ErrorCode::SystemIoFailure)
                if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) =>
            {
                Self::Full
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) => Self::Disk(error),
            _ => Self::Statement(error),
        }
    }
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its folder or its file cannot be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The file or directory that was to be created.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged ({finding}); move it away and put a backup in its place",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage that SQLite reports.
        finding: String,
    },
    /// The file was written by another program.
    #[error("{} is no database of Plexus; name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{} was written by a newer version of Plexus; upgrade Plexus or name another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The file is valid, but cannot be used now.
    #[error("cannot open {}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        source: StoreError,
    },
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::Closed(Box::new(error))
    }
}

/// An error of opening a file with its cause, in one line.
fn because(error: &OpenError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
