//! The embedded database that the services built into Plexus keep their data in.
//!
//! A [`Store`] is one SQLite file. Any number of tasks, and of processes, may use it at once. What
//! is stored in it is not its business: an activation brings its tables as [`Migrations`] and its
//! statements as closures, which are handed a connection.
//!
//! ```
//! use plexus_store::{Migrations, Store, StoreError};
//!
//! const NOTES: Migrations = Migrations {
//!     owner: "notes",
//!     steps: &["CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"],
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join(plexus_store::FILE_NAME);
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
//! # What is promised
//!
//! - A write that was acknowledged stays, whatever happens to the process or the machine. A write
//!   that was not is there whole or not at all.
//! - Writers take turns, across processes too. Readers never wait for them, and see one moment.
//! - Dropping the future of [`Store::write`] while it waits for its turn means that nothing
//!   happens. Later, the transaction is carried out whole all the same.
//! - A file that is damaged, newer or another program's is refused, and left as it is.
//!
//! # Queues
//!
//! There are none: whoever wants to read or write waits in its own future, so nothing piles up
//! that its callers do not hold. Who waits for [`PATIENCE`] gets [`StoreError::Busy`].
//!
//! # PostgreSQL
//!
//! When many nodes share their data, the same closures can run on a PostgreSQL connection: they run
//! on blocking threads, as a blocking driver wants it, and they know of nothing but a transaction
//! and SQL. What would change: the type of the connection that they are handed, `?1` to `$1`,
//! `STRICT` and `WITHOUT ROWID` in migrations, and the kinds of [`StoreError`], which are read from
//! SQLSTATE. What would not: who calls what, and when.

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
pub use store::{PATIENCE, Store};
