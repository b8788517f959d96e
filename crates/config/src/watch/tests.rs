use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::edit;

struct Fixture {
    directory: TempDir,
    watcher: Watcher,
    first: Loaded,
}

impl Fixture {
    async fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(&directory, name, text);
        }
        let project_dir = directory.path().join("project");
        fs::create_dir_all(&project_dir).unwrap();
        fs::create_dir_all(directory.path().join("home")).unwrap();
        let locations = Locations {
            project_dir,
            home: Some(directory.path().join("home")),
            config_dir: Some(directory.path().join("config/plexus")),
            explicit: Vec::new(),
        };
        let (first, watcher) = Watcher::start(locations, Arc::new(|_: &str| None))
            .await
            .unwrap();
        Self {
            directory,
            watcher,
            first,
        }
    }

    /// Waits until a change has led to `names`. The system may report a change in several steps.
    async fn until(&mut self, names: &[&str]) -> Loaded {
        let wait = async {
            loop {
                let loaded = self.watcher.changed().await;
                if names_of(&loaded) == names {
                    return loaded;
                }
            }
        };
        timeout(Duration::from_secs(30), wait).await.unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.directory, name, text);
    }
}

fn write(directory: &TempDir, name: &str, text: &str) {
    let file = directory.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn names_of(loaded: &Loaded) -> Vec<&str> {
    loaded
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect()
}

const ONE: &str = r#"{"mcpServers": {"one": {"command": "x"}}}"#;
const TWO: &str = r#"{"mcpServers": {"two": {"command": "x"}}}"#;

/// A changed configuration is loaded without a restart.
#[tokio::test]
async fn a_written_file_is_read_again() {
    let mut fixture = Fixture::new(&[("project/.mcp.json", ONE)]).await;
    assert_eq!(names_of(&fixture.first), ["one"]);
    fixture.write("project/.mcp.json", TWO);
    fixture.until(&["two"]).await;
    fs::remove_file(fixture.directory.path().join("project/.mcp.json")).unwrap();
    fixture.until(&[]).await;
}

#[tokio::test]
async fn a_replaced_file_is_read_again() {
    let mut fixture = Fixture::new(&[("project/.mcp.json", ONE)]).await;
    let file = fixture.directory.path().join("project/.mcp.json");
    for _ in 0..3 {
        edit::write(&file, TWO).unwrap();
        fixture.until(&["two"]).await;
        edit::write(&file, ONE).unwrap();
        fixture.until(&["one"]).await;
    }
}

#[tokio::test]
async fn files_in_directories_that_come_and_go_are_seen() {
    let mut fixture = Fixture::new(&[]).await;
    for _ in 0..2 {
        fixture.write("project/.claude/settings.local.json", ONE);
        fixture.until(&["one"]).await;
        fs::remove_dir_all(fixture.directory.path().join("project/.claude")).unwrap();
        fixture.until(&[]).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_target_of_a_link_is_watched() {
    let directory = tempfile::tempdir().unwrap();
    write(&directory, "elsewhere/servers.json", ONE);
    let link = directory.path().join(".mcp.json");
    std::os::unix::fs::symlink(directory.path().join("elsewhere/servers.json"), &link).unwrap();
    let locations = Locations {
        project_dir: directory.path().to_owned(),
        ..Locations::default()
    };
    let (first, watcher) = Watcher::start(locations, Arc::new(|_: &str| None))
        .await
        .unwrap();
    let mut fixture = Fixture {
        directory,
        watcher,
        first,
    };
    assert_eq!(names_of(&fixture.first), ["one"]);
    fixture.write("elsewhere/servers.json", TWO);
    fixture.until(&["two"]).await;
}

#[tokio::test]
async fn settings_and_environment_files_are_watched() {
    let server = r#"{"mcpServers": {"one": {"command": "x", "env_file": ".env"}}}"#;
    let mut fixture = Fixture::new(&[("project/.mcp.json", server)]).await;
    assert_eq!(names_of(&fixture.first), [""; 0]);
    fixture.write("project/.env", "A=1");
    let loaded = fixture.until(&["one"]).await;
    assert_eq!(loaded.settings.hub.start, crate::Start::Eager);
    fixture.write("config/plexus/plexus.toml", "[hub]\nstart = \"lazy\"");
    let wait =
        async { while fixture.watcher.changed().await.settings.hub.start != crate::Start::Lazy {} };
    timeout(Duration::from_secs(30), wait).await.unwrap();
}

/// A file that is read while it is being written is read again before it is reported.
#[tokio::test]
async fn a_half_written_file_is_not_reported() {
    let mut fixture = Fixture::new(&[("project/.mcp.json", ONE)]).await;
    let file = fixture.directory.path().join("project/.mcp.json");
    fs::write(&file, &TWO.as_bytes()[..TWO.len() / 2]).unwrap();
    // The second file refers to a variable. When the variable is looked up, the first half has been
    // read.
    fixture.write(
        "home/.mcp.json",
        r#"{"mcpServers": {"probe": {"command": "${X:-x}"}}}"#,
    );
    let rest = Mutex::new(Some(file));
    fixture.watcher.environment = Arc::new(move |_| {
        if let Some(file) = rest.lock().unwrap().take() {
            fs::write(file, TWO).unwrap();
        }
        None
    });
    let loaded = timeout(Duration::from_secs(30), fixture.watcher.changed())
        .await
        .unwrap();
    assert_eq!(names_of(&loaded), ["two", "probe"]);
    assert_eq!(loaded.problems, []);
}

#[tokio::test]
async fn a_change_is_reported_after_dropped_waits() {
    let mut fixture = Fixture::new(&[("project/.mcp.json", ONE)]).await;
    fixture.write("project/.mcp.json", TWO);
    // Dropped between the change and its report.
    for _ in 0..3 {
        let waiting = timeout(Duration::from_millis(1), fixture.watcher.changed());
        assert!(waiting.await.is_err());
    }
    fixture.until(&["two"]).await;
}

#[test]
fn events_of_other_files_are_not_relevant() {
    let relevant = Relevant::new(&["/a/b/.mcp.json".into()]);
    assert!(relevant.has(Path::new("/a/b/.mcp.json")));
    assert!(relevant.has(Path::new("/a/b")));
    assert!(!relevant.has(Path::new("/a/b/.mcp.json.swp")));
    assert!(!relevant.has(Path::new("/a/c")));
    assert!(!is_change(EventKind::Access(AccessKind::Read)));
    assert!(is_change(EventKind::Access(AccessKind::Close(
        AccessMode::Write
    ))));
}
