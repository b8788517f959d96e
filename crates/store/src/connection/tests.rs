use std::fs;
use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;

use super::*;

const NOTES: Migrations = Migrations {
    owner: "notes",
    steps: &["CREATE TABLE notes (text TEXT NOT NULL) STRICT"],
};

const LONGER_NOTES: Migrations = Migrations {
    owner: "notes",
    steps: &[
        "CREATE TABLE notes (text TEXT NOT NULL) STRICT",
        "ALTER TABLE notes ADD COLUMN author TEXT; INSERT INTO notes (text) VALUES ('upgraded')",
    ],
};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/plexus.db");
    (folder, path)
}

fn notes(db: &Connection) -> i64 {
    db.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn a_new_file_is_private_durable_and_shared() {
    let (_folder, path) = place();
    let db = open(&path, &[NOTES]).unwrap();
    let setting = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap()
    };
    assert_eq!(setting("journal_mode"), "wal".to_owned().into());
    assert_eq!(setting("synchronous"), 2.into());
    assert_eq!(setting("foreign_keys"), 1.into());
    assert_eq!(setting("busy_timeout"), 5000.into());
    assert_eq!(setting("application_id"), APPLICATION_ID.into());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }
}

#[test]
fn steps_run_once_and_in_order() {
    let (_folder, path) = place();
    for _ in 0..2 {
        assert_eq!(notes(&open(&path, &[NOTES]).unwrap()), 0);
    }
    for _ in 0..2 {
        assert_eq!(notes(&open(&path, &[LONGER_NOTES]).unwrap()), 1);
    }
}

#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let (_folder, path) = place();
    let wrong = Migrations {
        owner: "notes",
        steps: &["CREATE TABLE notes (text TEXT)", "this is no SQL"],
    };
    let error = open(&path, &[wrong]).unwrap_err();
    assert!(matches!(error, OpenError::Unusable { .. }), "{error}");
    open(&path, &[NOTES]).unwrap();
}

/// The migrations of each owner are independent: a process may open the file with some owners only.
#[test]
fn owners_come_and_go() {
    let (_folder, path) = place();
    let tags = Migrations {
        owner: "tags",
        steps: &["CREATE TABLE tags (name TEXT)"],
    };
    open(&path, &[NOTES]).unwrap();
    open(&path, &[tags]).unwrap();
    let db = open(&path, &[tags, LONGER_NOTES]).unwrap();
    assert_eq!(notes(&db), 1);
}

#[test]
fn a_database_of_a_newer_version_is_not_opened() {
    let (_folder, path) = place();
    drop(open(&path, &[LONGER_NOTES]).unwrap());
    let error = open(&path, &[NOTES]).unwrap_err();
    assert!(matches!(error, OpenError::Newer { .. }), "{error}");

    let db = open(&path, &[LONGER_NOTES]).unwrap();
    db.pragma_update(None, "user_version", FORMAT_VERSION + 1)
        .unwrap();
    drop(db);
    let error = open(&path, &[LONGER_NOTES]).unwrap_err();
    assert!(error.to_string().contains("upgrade Plexus"), "{error}");
}

#[test]
fn another_programs_database_is_left_alone() {
    let (folder, _) = place();
    let path = folder.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = open(&path, &[NOTES]).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let (folder, _) = place();
    let path = folder.path().join("letter.txt");
    let letter = b"Dear database, ".repeat(100);
    fs::write(&path, &letter).unwrap();
    let error = open(&path, &[NOTES]).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("put a backup in its place"));
    assert_eq!(fs::read(&path).unwrap(), letter);
}

/// A file that is overwritten or truncated in the middle is refused when it is opened.
#[test]
fn damage_is_found() {
    let (_folder, path) = place();
    let db = open(&path, &[NOTES]).unwrap();
    for _ in 0..200 {
        let text = "x".repeat(500);
        db.execute("INSERT INTO notes VALUES (?1)", [text]).unwrap();
    }
    drop(db);
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4096;
    assert!(pages > 20);

    let mut overwritten = whole.clone();
    overwritten[4096 * (pages / 2)..][..4096].fill(0xa5);
    let truncated = whole[..4096 * (pages / 2)].to_vec();
    for damaged in [overwritten, truncated] {
        fs::write(&path, &damaged).unwrap();
        let error = open(&path, &[NOTES]).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(notes(&open(&path, &[NOTES]).unwrap()), 200);
}

#[test]
fn errors_name_a_path_that_cannot_be_created() {
    let (folder, _) = place();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file.join("plexus.db"), &[NOTES]).unwrap_err();
    assert!(matches!(error, OpenError::Create { .. }), "{error}");
    assert!(error.to_string().contains("file"), "{error}");
    let error = open(folder.path(), &[NOTES]).unwrap_err();
    assert!(matches!(error, OpenError::Unusable { .. }), "{error}");
}

/// Many threads create the same file at the same time, like clients that each start a server.
#[test]
fn many_may_create_the_same_file_at_once() {
    let (_folder, path) = place();
    thread::scope(|scope| {
        let opening: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| notes(&open(&path, &[LONGER_NOTES]).unwrap())))
            .collect();
        for opened in opening {
            assert_eq!(opened.join().unwrap(), 1);
        }
    });
}

#[test]
fn readers_do_not_write() {
    let (_folder, path) = place();
    let writer = open(&path, &[NOTES]).unwrap();
    let reader = open_reader(&path).unwrap();
    let error = reader.execute("DELETE FROM notes", []).unwrap_err();
    assert!(matches!(StoreError::from(error), StoreError::ReadOnly));
    drop(writer);
}
