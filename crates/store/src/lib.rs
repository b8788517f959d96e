//! The embedded database that the services built into Plexus keep their data in.
//! A [`Store`] is one SQLite file, which any number of tasks and processes may use at once. The
//! store does not know its tables: a service brings them as [`Migrations`], and its
//! statements as closures that get a connection.
//!
//! ```
//! use plexus_mcp_store::{Migrations, Store, StoreError};
//!
//! const NOTES: Migrations = Migrations {
//!     owner: "notes",
//!     steps: &["CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"],
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join(plexus_mcp_store::FILE_NAME);
//! let store = Store::open(&path, &[NOTES])?;
//! store
//!     .write(|transaction| {
//!         transaction.execute("INSERT INTO notes (text) VALUES (?1)", ["remember the milk"])?;
//!         Ok::<_, StoreError>(())
//!     })
//!     .await?;
//! let count: i64 = store
//!     .read(|db| Ok::<_, StoreError>(db.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?))
//!     .await?;
//! assert_eq!(count, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - An acknowledged write is durable: it survives a crash of the process or of the machine. A
//!   write that was not acknowledged is there completely or not at all.
//! - Writes are serialised, across processes too. Readers never wait for writers, and see a
//!   consistent snapshot.
//! - If the future of [`Store::write`] is dropped while it waits for its turn, nothing happens.
//!   Later, the transaction is completed all the same.
//! - A file that is damaged, written by a newer version, or by another program is refused and not
//!   changed. A file above 1 MiB is opened at once and checked for damage in the background; if it
//!   is damaged, it is refused from then on.
//!
//! # Queues
//!
//! There are none: a caller that wants to read or write waits in its own future, so memory is
//! bounded by the callers. A caller that has waited for [`LOCK_TIMEOUT`] gets [`StoreError::Busy`].
//!
//! # PostgreSQL
//!
//! When many nodes share their data, the same closures can run on a PostgreSQL connection: they run
//! on blocking threads, as a blocking driver needs it, and use only a transaction and SQL. To
//! change: the type of the connection, `?1` to `$1`, `STRICT` and `WITHOUT ROWID` in migrations,
//! and the mapping of SQLSTATE to [`StoreError`]. The callers would not change.

mod backup;
mod connection;
mod error;
mod location;
mod migrations;
mod store;

pub use backup::BackupError;
pub use error::{OpenError, StoreError};
pub use location::{FILE_NAME, data_dir};
pub use migrations::Migrations;
pub use rusqlite;
pub use store::{LOCK_TIMEOUT, Store};
