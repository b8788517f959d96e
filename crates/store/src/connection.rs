//! Opens connections to a database file, after checks that Plexus made the file and it is intact.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{OpenError, StoreError};
use crate::migrations::{Migrations, Newer};

/// `application_id` in the file header, "Plxs", which marks a file as a database of Plexus.
const APPLICATION_ID: i32 = 0x506c_7873;

/// `user_version` in the file header: the version of the table `migrations` itself.
const FORMAT_VERSION: i32 = 1;

/// The largest file that is read completely when it is opened, to look for damage. That takes a few
/// milliseconds. A larger file is checked in the background, see [`check_file`].
const MAX_BYTES_CHECKED_AT_OPEN: u64 = 1024 * 1024;

/// How long a connection waits for a write of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay between attempts to switch a new file to write-ahead logging, while another process does
/// the same.
const WAL_RETRY_DELAY: Duration = Duration::from_millis(20);

/// Opens the database at `path` for writing, creating it, its folder and its tables as needed.
pub(crate) fn open(path: &Path, migrations: &[Migrations]) -> Result<Connection, OpenError> {
    create(path)?;
    let opened = connect(path).and_then(|mut db| {
        let prepared = prepare(&mut db, migrations, is_large(path))?;
        Ok(prepared.map(|()| db))
    });
    let path = path.to_owned();
    match opened {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(Refused::Damaged(finding))) => Err(OpenError::Damaged { path, finding }),
        Ok(Err(Refused::Foreign)) => Err(OpenError::Foreign { path }),
        Ok(Err(Refused::Newer)) => Err(OpenError::Newer { path }),
        Err(error) => Err(match StoreError::from(error) {
            StoreError::Damaged => OpenError::Damaged {
                path,
                finding: "it is not a whole SQLite database".to_owned(),
            },
            source => OpenError::Unusable { path, source },
        }),
    }
}

/// A read-only connection to a database that [`open`] prepared.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let db = connect(path)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// Why a readable file is refused and not changed.
enum Refused {
    Damaged(String),
    Foreign,
    Newer,
}

impl From<Newer> for Refused {
    fn from(_: Newer) -> Self {
        Self::Newer
    }
}

/// Creates the file and its directory, unless they exist. Returns whether the file is empty.
///
/// Only the user can read the file: conversations with agents are private.
pub(crate) fn create(path: &Path) -> Result<bool, OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Create { path, source }
    };
    let mut folders = DirBuilder::new();
    let mut options = OpenOptions::new();
    folders.recursive(true);
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

        folders.mode(0o700);
        options.mode(0o600);
    }
    if let Some(folder) = path.parent() {
        folders.create(folder).map_err(failed(folder))?;
    }
    match options.open(path) {
        Ok(_new) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(path.metadata().is_ok_and(|file| file.len() == 0))
        }
        Err(error) => Err(failed(path)(error)),
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Without `CREATE`: a file that was deleted is an error, and not replaced by an empty one.
    // Without a mutex: each connection is used by one thread at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "foreign_keys", true)?;
    // With a weaker setting, the write-ahead log is not synced at every commit, and a power failure
    // can lose acknowledged writes.
    db.pragma_update(None, "synchronous", "FULL")?;
    // macOS flushes the disk cache at a sync only with this setting.
    db.pragma_update(None, "fullfsync", true)?;
    Ok(db)
}

fn prepare(
    db: &mut Connection,
    migrations: &[Migrations],
    is_large: bool,
) -> rusqlite::Result<Result<(), Refused>> {
    let current = match state(db, migrations)? {
        Ok(State::Current) => true,
        Ok(State::Empty | State::Older) => false,
        Err(refused) => return Ok(Err(refused)),
    };
    // A migration must not change a damaged file.
    if !(is_large && current)
        && let Err(finding) = check(db)?
    {
        return Ok(Err(Refused::Damaged(finding)));
    }
    share(db)?;
    if current {
        return Ok(Ok(()));
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have created or migrated the tables meanwhile.
    match state(&transaction, migrations)? {
        Ok(State::Empty) => {
            transaction.execute_batch(
                "CREATE TABLE migrations (
                     owner TEXT NOT NULL,
                     step INTEGER NOT NULL,
                     PRIMARY KEY (owner, step)
                 ) STRICT, WITHOUT ROWID",
            )?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
        }
        Ok(State::Older | State::Current) => {}
        Err(refused) => return Ok(Err(refused)),
    }
    for migrations in migrations {
        migrations.run(&transaction)?;
    }
    transaction.commit()?;
    Ok(Ok(()))
}

enum State {
    Empty,
    Older,
    Current,
}

fn state(db: &Connection, migrations: &[Migrations]) -> rusqlite::Result<Result<State, Refused>> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(Ok(State::Empty));
    }
    if number("application_id")? != APPLICATION_ID {
        return Ok(Err(Refused::Foreign));
    }
    if number("user_version")? > FORMAT_VERSION {
        return Ok(Err(Refused::Newer));
    }
    let mut state = State::Current;
    for migrations in migrations {
        match migrations.pending(db)? {
            Ok(true) => state = State::Older,
            Ok(false) => {}
            Err(newer) => return Ok(Err(newer.into())),
        }
    }
    Ok(Ok(state))
}

/// Whether the file is so large that [`open`] does not look for damage everywhere in it.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.len() > MAX_BYTES_CHECKED_AT_OPEN)
}

/// Reads the whole file to look for damage.
///
/// # Errors
/// The file is damaged. If it cannot be read for another reason, it counts as intact: the next
/// reader gets the reason.
pub(crate) fn check_file(path: &Path) -> Result<(), OpenError> {
    let checked = open_reader(path).and_then(|db| check(&db));
    let finding = match checked.map_err(StoreError::from) {
        Ok(Err(finding)) => finding,
        Err(StoreError::Damaged) => "it is not a whole SQLite database".to_owned(),
        Ok(Ok(())) | Err(_) => return Ok(()),
    };
    Err(OpenError::Damaged {
        path: path.to_owned(),
        finding,
    })
}

/// Checks the file for damage, and returns the first finding.
fn check(db: &Connection) -> rusqlite::Result<Result<(), String>> {
    let finding: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    // A heading may precede the finding.
    let finding = finding.lines().last().unwrap_or_default();
    Ok(if finding == "ok" {
        Ok(())
    } else {
        Err(finding.to_owned())
    })
}

/// Switches to write-ahead logging, with which readers do not wait for writers.
#[expect(
    clippy::disallowed_methods,
    reason = "stores are opened where one may block, and SQLite itself does not wait here"
)]
fn share(db: &Connection) -> rusqlite::Result<()> {
    let mut remaining = BUSY_TIMEOUT;
    loop {
        let changed = db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
        match changed {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && remaining > WAL_RETRY_DELAY =>
            {
                remaining -= WAL_RETRY_DELAY;
                std::thread::sleep(WAL_RETRY_DELAY);
            }
            changed => return changed,
        }
    }
}

#[cfg(test)]
mod tests;
