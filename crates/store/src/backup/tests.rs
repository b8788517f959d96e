use std::fs;

use super::*;
use crate::Migrations;

const NOTES: Migrations = Migrations {
    owner: "notes",
    steps: &["CREATE TABLE notes (text TEXT NOT NULL) STRICT"],
};

async fn add(store: &Store) {
    let add = |transaction: &rusqlite::Transaction<'_>| -> Result<(), StoreError> {
        transaction.execute("INSERT INTO notes VALUES ('x')", [])?;
        Ok(())
    };
    store.write(add).await.unwrap();
}

async fn count(store: &Store) -> i64 {
    let count = |db: &Connection| -> Result<i64, StoreError> {
        Ok(db.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?)
    };
    store.read(count).await.unwrap()
}

/// The copy has all data, the write-ahead log included, and is independent of the original.
#[tokio::test]
async fn a_copy_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("plexus.db"), &[NOTES]).unwrap();
    add(&store).await;
    let path = folder.path().join("copy.db");
    store.backup(&path).await.unwrap();
    add(&store).await;

    let copy = Store::open(&path, &[NOTES]).unwrap();
    assert_eq!(count(&copy).await, 1);
    add(&copy).await;
    add(&copy).await;
    assert_eq!((count(&copy).await, count(&store).await), (3, 2));
}

#[tokio::test]
async fn nothing_is_overwritten_and_nothing_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("data/plexus.db"), &[NOTES]).unwrap();
    let path = folder.path().join("letter.txt");
    fs::write(&path, "Dear reader").unwrap();
    let error = store.backup(&path).await.unwrap_err();
    assert!(matches!(error, BackupError::Exists(_)), "{error}");
    assert!(
        error.to_string().contains("letter.txt exists already"),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"Dear reader");

    let missing = folder.path().join("missing/copy.db");
    let error = store.backup(&missing).await.unwrap_err();
    assert!(matches!(error, BackupError::Write { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Concurrent writes succeed during a backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_succeed_during_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("plexus.db"), &[NOTES]).unwrap();
    let path = folder.path().join("copy.db");
    let writing = async {
        for _ in 0..20 {
            add(&store).await;
        }
    };
    let (copied, ()) = tokio::join!(store.backup(&path), writing);
    copied.unwrap();
    assert!(count(&Store::open(&path, &[NOTES]).unwrap()).await <= 20);
}
