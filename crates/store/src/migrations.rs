//! Migrations: the steps that create and change tables.

use std::cmp::Ordering;

use rusqlite::{Connection, Transaction};

/// The migration steps that create the tables of one part of the program.
///
/// Steps are only appended. Never edit a step of a released version, since it is not run again.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a constant of its user")]
pub struct Migrations {
    /// The owner of the tables, a unique name.
    pub owner: &'static str,
    /// One or more SQL statements each, in order.
    pub steps: &'static [&'static str],
}

/// The file has steps that this program does not know.
#[derive(Debug)]
pub(crate) struct Newer;

impl Migrations {
    /// Whether `db` lacks some of the steps.
    pub(crate) fn pending(&self, db: &Connection) -> rusqlite::Result<Result<bool, Newer>> {
        let known = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        Ok(match self.done(db)?.cmp(&known) {
            Ordering::Less => Ok(true),
            Ordering::Equal => Ok(false),
            Ordering::Greater => Err(Newer),
        })
    }

    /// Runs the steps that have not been run yet.
    pub(crate) fn run(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let done = self.done(transaction)?;
        for (step, statements) in (1..).zip(self.steps).filter(|(step, _)| *step > done) {
            transaction.execute_batch(statements)?;
            transaction.execute(
                "INSERT INTO migrations (owner, step) VALUES (?1, ?2)",
                (self.owner, step),
            )?;
        }
        Ok(())
    }

    fn done(&self, db: &Connection) -> rusqlite::Result<u32> {
        db.query_row(
            "SELECT count(*) FROM migrations WHERE owner = ?1",
            [self.owner],
            |row| row.get(0),
        )
    }
}
