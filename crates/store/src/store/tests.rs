use std::sync::mpsc;

use rusqlite::ffi;
use tempfile::TempDir;

use super::*;

const COUNTERS: Migrations = Migrations {
    owner: "counters",
    steps: &[
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
              CREATE TABLE labels (
                  counter TEXT NOT NULL REFERENCES counters (name),
                  label TEXT NOT NULL
              ) STRICT",
    ],
};

fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("plexus.db"), &[COUNTERS]).unwrap();
    (folder, store)
}

fn count(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    transaction.execute(
        "INSERT INTO counters VALUES ('c', 1) ON CONFLICT DO UPDATE SET value = value + 1",
        [],
    )?;
    Ok(())
}

fn counted(db: &Connection) -> Result<i64, StoreError> {
    let sum = "SELECT coalesce(sum(value), 0) FROM counters";
    Ok(db.query_row(sum, [], |row| row.get(0))?)
}

/// Makes a statement on a locked database fail at once, instead of after `BUSY_TIMEOUT`.
async fn impatient(store: &Store) {
    let set = |transaction: &Transaction<'_>| -> Result<(), StoreError> {
        Ok(transaction.busy_timeout(Duration::ZERO)?)
    };
    store.write(set).await.unwrap();
}

#[tokio::test]
async fn writes_are_visible_to_reads_and_after_reopening() {
    let (_folder, store) = store();
    assert_eq!(store.read(counted).await.unwrap(), 0);
    store.write(count).await.unwrap();
    assert_eq!(store.read(counted).await.unwrap(), 1);
    assert_eq!(store.read_blocking(counted).unwrap(), 1);
    let again = Store::open(store.path(), &[COUNTERS]).unwrap();
    assert_eq!(again.read(counted).await.unwrap(), 1);
}

#[tokio::test]
async fn work_that_fails_or_panics_changes_nothing() {
    let (_folder, store) = store();
    let failed = store
        .write(|transaction| {
            count(transaction)?;
            Err::<(), _>(StoreError::Full)
        })
        .await;
    assert!(matches!(failed, Err(StoreError::Full)));

    let panicked = store
        .write(|transaction| -> Result<(), StoreError> {
            count(transaction)?;
            panic!("on purpose")
        })
        .await;
    assert!(matches!(panicked, Err(StoreError::Abandoned)));
    let panicked = store
        .read(|_| -> Result<(), StoreError> { panic!("on purpose") })
        .await;
    assert!(matches!(panicked, Err(StoreError::Abandoned)));

    assert_eq!(store.read(counted).await.unwrap(), 0);
    store.write(count).await.unwrap();
    assert_eq!(store.read(counted).await.unwrap(), 1);
}

#[tokio::test]
async fn references_are_kept() {
    let (_folder, store) = store();
    let dangling = store
        .write(|transaction| {
            transaction.execute("INSERT INTO labels VALUES ('nobody', 'x')", [])?;
            Ok::<_, StoreError>(())
        })
        .await;
    assert!(matches!(dangling, Err(StoreError::Statement(_))));
}

/// A reader sees a snapshot. A concurrent write does not wait for the reader, and does not change
/// the snapshot.
#[tokio::test]
async fn a_reader_sees_one_moment() {
    let (_folder, store) = store();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let reading = store.read(move |db| {
        let before = counted(db)?;
        begun.send(()).unwrap();
        may_go_on.recv().unwrap();
        Ok::<_, StoreError>((before, counted(db)?))
    });
    let writing = async {
        tokio::task::spawn_blocking(move || has_begun.recv())
            .await
            .unwrap()
            .unwrap();
        store.write(count).await.unwrap();
        go_on.send(()).unwrap();
    };
    let (read, ()) = tokio::join!(reading, writing);
    assert_eq!(read.unwrap(), (0, 0));
    assert_eq!(store.read(counted).await.unwrap(), 1);
}

/// A write that is dropped while it waits for the lock changes nothing. A write that is dropped
/// later still completes.
#[tokio::test]
async fn dropping_a_write_never_leaves_half_of_it() {
    let (_folder, store) = store();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let running = store.write(move |transaction| {
        count(transaction)?;
        begun.send(()).unwrap();
        may_go_on.recv().unwrap();
        count(transaction)
    });
    {
        let mut running = std::pin::pin!(running);
        let started = tokio::task::spawn_blocking(move || has_begun.recv());
        tokio::select! {
            biased;
            _ = &mut running => unreachable!("it waits"),
            started = started => started.unwrap().unwrap(),
        }
        let mut waiting = std::pin::pin!(store.write(count));
        assert!(futures_poll(waiting.as_mut()).await.is_none());
    }
    go_on.send(()).unwrap();
    // The next write waits for the running one, whose future was dropped.
    store.write(count).await.unwrap();
    assert_eq!(store.read(counted).await.unwrap(), 3);
}

/// The output of a future that is polled once, if it is ready.
async fn futures_poll<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Two stores on one file behave like two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_several_processes_take_turns() {
    let (_folder, one) = store();
    let other = Store::open(one.path(), &[COUNTERS]).unwrap();
    let mut writing = tokio::task::JoinSet::new();
    for store in [&one, &other] {
        for _ in 0..50 {
            let store = store.clone();
            writing.spawn(async move { store.write(count).await });
        }
    }
    while let Some(written) = writing.join_next().await {
        written.unwrap().unwrap();
    }
    assert_eq!(one.read(counted).await.unwrap(), 100);
}

#[tokio::test]
async fn a_locked_database_is_busy() {
    let (_folder, store) = store();
    impatient(&store).await;
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.write(count).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy), "{error}");
    assert_eq!(store.read(counted).await.unwrap(), 0);
    other.execute_batch("ROLLBACK").unwrap();
    store.write(count).await.unwrap();
}

/// Waiting for the write lock or for a read permit ends with `Busy` after [`LOCK_TIMEOUT`].
#[tokio::test(start_paused = true)]
async fn waiting_for_a_lock_or_permit_ends_with_busy() {
    let (_folder, store) = store();
    let access = store.access().await.unwrap();
    let turn = access.writer.lock().await;
    let error = store.write(count).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy));
    drop(turn);

    let readers = u32::try_from(MAX_READERS).unwrap();
    let permits = access.reading.acquire_many(readers).await.unwrap();
    let error = store.read(counted).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy));
    drop(permits);
    assert_eq!(store.read(counted).await.unwrap(), 0);
}

/// `max_page_count` makes SQLite find the disk full when the file has that many pages.
#[tokio::test]
async fn a_full_disk_takes_nothing_away() {
    let (_folder, store) = store();
    store.write(count).await.unwrap();
    let fill = |transaction: &Transaction<'_>| -> Result<(), StoreError> {
        count(transaction)?;
        transaction.pragma_update(None, "max_page_count", 1)?;
        let text = "x".repeat(100_000);
        transaction.execute("INSERT INTO labels VALUES ('c', ?1)", [text])?;
        Ok(())
    };
    let error = store.write(fill).await.unwrap_err();
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert!(error.to_string().contains("make room"));
    assert_eq!(store.read(counted).await.unwrap(), 1);
}

#[tokio::test]
async fn a_read_only_database_can_still_be_read() {
    let (_folder, store) = store();
    store.write(count).await.unwrap();
    let protect = |transaction: &Transaction<'_>| -> Result<(), StoreError> {
        Ok(transaction.pragma_update(None, "query_only", true)?)
    };
    store.write(protect).await.unwrap();
    let error = store.write(count).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    assert_eq!(store.read(counted).await.unwrap(), 1);
}

/// `Full` is also the error if there is no space for the shared-memory file.
#[test]
fn a_full_disk_is_told_as_such() {
    for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert!(
            matches!(StoreError::from(error), StoreError::Full),
            "{code}"
        );
    }
}

/// A file that is damaged while it is open is reported, too.
#[tokio::test]
async fn a_database_damaged_under_way_says_so() {
    let (_folder, store) = store();
    store.write(count).await.unwrap();
    let checkpoint = Connection::open(store.path()).unwrap();
    checkpoint
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(checkpoint);
    let length = std::fs::metadata(store.path()).unwrap().len();
    let noise = vec![0xa5; usize::try_from(length).unwrap()];
    std::fs::write(store.path(), noise).unwrap();
    let error = store.read(counted).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged), "{error:?}");
}

/// While a file cannot be used, every use of the store returns the reason. Once it is repaired, the
/// same store works.
#[tokio::test]
async fn a_file_that_cannot_be_used_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plexus.db");
    std::fs::write(&path, "this is no database, and far too short for one").unwrap();
    let error = Store::open(&path, &[COUNTERS]).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    let store = Store::at(&path, &[COUNTERS]);
    let error = store.try_out().await.unwrap_err();
    assert!(matches!(error, StoreError::Closed(_)), "{error:?}");
    for _ in 0..2 {
        let error = store.read(counted).await.unwrap_err();
        assert!(
            error.to_string().contains("plexus.db is damaged"),
            "{error}"
        );
        let error = store.write(count).await.unwrap_err();
        assert!(matches!(error, StoreError::Closed(_)), "{error:?}");
        assert!(store.version_elsewhere().await.is_err());
    }
    let left = std::fs::read_to_string(&path).unwrap();
    assert!(left.starts_with("this is no database"));

    std::fs::remove_file(&path).unwrap();
    store.write(count).await.unwrap();
    assert_eq!(store.read(counted).await.unwrap(), 1);
}

/// `try_out` creates an empty file, and the first write creates the tables.
#[tokio::test]
async fn a_file_is_opened_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/plexus.db");
    let store = Store::at(&path, &[COUNTERS]);
    for _ in 0..2 {
        store.try_out().await.unwrap();
        assert_eq!(path.metadata().unwrap().len(), 0);
    }
    store.write(count).await.unwrap();
    assert_eq!(store.read(counted).await.unwrap(), 1);

    let within_a_file = Store::at(&path.join("plexus.db"), &[COUNTERS]);
    let error = within_a_file.try_out().await.unwrap_err();
    assert!(error.to_string().starts_with("cannot create"), "{error}");
}

/// The version changes with writes of other connections, not with the store's own.
#[tokio::test]
async fn the_version_tells_what_others_wrote() {
    let (folder, store) = store();
    let other = Store::open(&folder.path().join("plexus.db"), &[COUNTERS]).unwrap();
    let before = store.version_elsewhere().await.unwrap();
    store.write(count).await.unwrap();
    store.read(counted).await.unwrap();
    assert_eq!(store.version_elsewhere().await.unwrap(), before);
    other.write(count).await.unwrap();
    let after = store.version_elsewhere().await.unwrap();
    assert_ne!(after, before);
    assert_eq!(store.version_elsewhere().await.unwrap(), after);
}

/// A large file is used at once: reading all of it to look for damage takes long. The damage is found
/// meanwhile, and the file is refused from then on.
#[tokio::test]
async fn a_large_file_is_checked_while_it_is_used() {
    let (folder, store) = store();
    let fill = |transaction: &Transaction<'_>| -> Result<(), StoreError> {
        transaction.execute_batch(
            "CREATE TABLE ballast (bytes BLOB NOT NULL) STRICT;
             INSERT INTO ballast VALUES (zeroblob(2000000))",
        )?;
        count(transaction)
    };
    store.write(fill).await.unwrap();
    let path = store.path().to_owned();
    drop(store);

    let intact = Store::open(&path, &[COUNTERS]).unwrap();
    assert_eq!(intact.read(counted).await.unwrap(), 1);
    drop(intact);
    assert!(crate::connection::check_file(&path).is_ok());

    // A page in the middle, which nothing else reads.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let damaged = Store::open(&path, &[COUNTERS]).unwrap();
    let refused = async {
        loop {
            if let Err(error) = damaged.read(counted).await {
                return error.to_string();
            }
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(30), refused).await;
    assert!(refused.unwrap().contains("is damaged"));
    drop(folder);
}
