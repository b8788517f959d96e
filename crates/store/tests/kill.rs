//! Kills processes while they write to one file, and checks the file after each kill.
//!
//! Five kills of a few hundred writes are made by default. The full run is
//! `PLEXUS_KILLS=50 PLEXUS_WRITES=10000 cargo nextest run -p plexus-mcp-store --test kill`.

#![cfg(unix)]

#[cfg(test)]
mod kill {
    use std::collections::BTreeMap;
    use std::env;
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use plexus_mcp_store::rusqlite::{Connection, Transaction};
    use plexus_mcp_store::{Migrations, Store, StoreError};
    use tokio::task::JoinSet;

    /// The database file, for the process that is killed. It runs the test below with this
    /// variable.
    const FILE_VARIABLE: &str = "PLEXUS_KILL_TEST_FILE";

    /// How many tasks write at once.
    const WRITERS: i64 = 4;

    /// How many rows a step writes.
    const ROWS_PER_STEP: i64 = 5;

    /// The number of steps whose rows stay: each step deletes the rows of the step this far back.
    const STEPS_KEPT: i64 = 50;

    const TABLES: Migrations = Migrations {
        owner: "kill",
        steps: &["
            CREATE TABLE writers (writer INTEGER PRIMARY KEY, steps INTEGER NOT NULL) STRICT;
            CREATE TABLE parts (
                writer INTEGER NOT NULL REFERENCES writers (writer),
                step INTEGER NOT NULL,
                part INTEGER NOT NULL,
                text TEXT NOT NULL,
                PRIMARY KEY (writer, step, part)
            ) STRICT;
        "],
    };

    /// Acceptance 2 of the built-in activations: after a kill at any time, the store opens, has
    /// every acknowledged write, and has no partial write.
    #[tokio::test]
    async fn a_kill_takes_nothing_away() {
        if let Some(path) = env::var_os(FILE_VARIABLE) {
            return write_until_killed(path.as_ref()).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plexus.db");
        let writes = number("PLEXUS_WRITES", 400);
        let mut steps: BTreeMap<i64, i64> = (0..WRITERS).map(|writer| (writer, 0)).collect();
        for _ in 0..number("PLEXUS_KILLS", 5) {
            let mut child = start(&path, writes);
            steps.extend(kill_after(&mut child, random() % writes));
            let store = Store::open(&path, &[TABLES]).unwrap();
            steps = store.read(move |db| verify(db, &steps)).await.unwrap();
        }
    }

    /// The work of the process that is killed, which runs the test above with [`FILE_VARIABLE`].
    async fn write_until_killed(path: &Path) {
        let writes = i64::try_from(number("PLEXUS_WRITES", 400)).unwrap();
        let store = Store::open(path, &[TABLES]).unwrap();
        // Ends the line that the test harness has begun.
        acknowledge("\n");
        let mut writing = JoinSet::new();
        for writer in 0..WRITERS {
            let store = store.clone();
            writing.spawn(async move {
                for _ in 0..writes / WRITERS {
                    let step = store.write(move |db| write(db, writer)).await.unwrap();
                    acknowledge(&format!("{writer} {step}\n"));
                }
            });
        }
        while let Some(written) = writing.join_next().await {
            written.unwrap();
        }
    }

    /// Writes the next step of a writer: counts it, inserts its rows, and deletes those of an old
    /// step.
    fn write(db: &Transaction<'_>, writer: i64) -> Result<i64, StoreError> {
        let step = db.query_row(
            "INSERT INTO writers VALUES (?1, 1)
             ON CONFLICT DO UPDATE SET steps = steps + 1 RETURNING steps",
            [writer],
            |row| row.get(0),
        )?;
        for part in 0..ROWS_PER_STEP {
            let row = (writer, step, part, text(writer, step, part));
            db.execute("INSERT INTO parts VALUES (?1, ?2, ?3, ?4)", row)?;
        }
        let old = (writer, step - STEPS_KEPT);
        db.execute("DELETE FROM parts WHERE (writer, step) = (?1, ?2)", old)?;
        Ok(step)
    }

    fn text(writer: i64, step: i64, part: i64) -> String {
        // Long enough for a step to need several pages.
        format!("{writer}/{step}/{part} ").repeat(100)
    }

    /// Checks the rows of each writer, and returns the number of its steps: the acknowledged ones,
    /// and perhaps one more.
    fn verify(
        db: &Connection,
        acknowledged: &BTreeMap<i64, i64>,
    ) -> Result<BTreeMap<i64, i64>, StoreError> {
        let broken = db.prepare("PRAGMA foreign_key_check")?.exists([])?;
        assert!(!broken);
        let mut there = BTreeMap::new();
        for (&writer, &acknowledged) in acknowledged {
            let steps = "SELECT coalesce(max(steps), 0) FROM writers WHERE writer = ?1";
            let steps: i64 = db.query_row(steps, [writer], |row| row.get(0))?;
            assert!(
                steps == acknowledged || steps == acknowledged + 1,
                "{acknowledged} steps of writer {writer} were acknowledged, {steps} are there"
            );
            let mut expected = Vec::new();
            for step in (steps - STEPS_KEPT + 1).max(1)..=steps {
                expected
                    .extend((0..ROWS_PER_STEP).map(|part| (step, part, text(writer, step, part))));
            }
            let parts = "SELECT step, part, text FROM parts WHERE writer = ?1 ORDER BY step, part";
            let mut parts = db.prepare(parts)?;
            let row = |row: &plexus_mcp_store::rusqlite::Row<'_>| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            };
            let found: Result<Vec<(i64, i64, String)>, _> =
                parts.query_map([writer], row)?.collect();
            assert!(found? == expected, "writer {writer} at step {steps}");
            there.insert(writer, steps);
        }
        Ok(there)
    }

    /// Starts this test binary again, with the same test and [`FILE_VARIABLE`].
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where this test starts a process"
    )]
    fn start(path: &Path, writes: u64) -> Child {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "kill::a_kill_takes_nothing_away", "--nocapture"])
            .env(FILE_VARIABLE, path)
            .env("PLEXUS_WRITES", writes.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Kills the process after more than `writes` acknowledged writes. Returns the last
    /// acknowledged step of each writer.
    fn kill_after(child: &mut Child, writes: u64) -> BTreeMap<i64, i64> {
        let mut seen = 0;
        let mut killed = false;
        let mut acknowledged = BTreeMap::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some((writer, step)) = line.split_once(' ') else {
                continue;
            };
            // Anything else is from the test harness.
            if let (Ok(writer), Ok(step)) = (writer.parse(), step.parse()) {
                acknowledged.insert(writer, step);
                seen += 1;
            }
            if seen > writes && !killed {
                child.kill().unwrap();
                killed = true;
            }
        }
        assert!(killed, "it ended by itself after {seen} writes");
        child.wait().unwrap();
        acknowledged
    }

    /// Prints a line with one write, so that a kill leaves the whole line or nothing.
    fn acknowledge(line: &str) {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(line.as_bytes()).unwrap();
        stdout.flush().unwrap();
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "how much is to be tested is said in the environment"
    )]
    fn number(variable: &str, default: u64) -> u64 {
        env::var(variable).map_or(default, |number| number.parse().unwrap())
    }

    fn random() -> u64 {
        RandomState::new().build_hasher().finish()
    }
}
