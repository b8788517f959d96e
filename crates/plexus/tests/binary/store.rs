//! The stored data: damaged files, full disks and changes by other processes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::process::{DATA_DIR, Plexus, ProcessOutput, plexus};

fn start(folder: &Path, arguments: &[&str]) -> Plexus {
    Plexus::spawn(plexus(arguments).env(DATA_DIR, folder))
}

/// Runs a command until it exits.
fn run(folder: &Path, arguments: &[&str]) -> ProcessOutput {
    start(folder, arguments).end()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let ended = run(folder, arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.join("\n")
}

fn served(folder: &Path) -> Plexus {
    let mut plexus = start(folder, &["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    plexus
}

fn ask(plexus: &mut Plexus, method: &str, params: &Value) -> Value {
    plexus
        .ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

/// The text of a tool's result, and whether it failed.
fn call(plexus: &mut Plexus, tool: &str, arguments: &Value) -> (String, bool) {
    let answer = ask(
        plexus,
        "tools/call",
        &json!({ "name": tool, "arguments": arguments }),
    );
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().expect(tool);
    (text.to_owned(), result["isError"] == true)
}

/// A backup is made while a server runs, and can replace the database.
#[test]
fn a_backup_can_be_gone_back_to() {
    let data = tempfile::tempdir().unwrap();
    let mut plexus = served(data.path());
    call(
        &mut plexus,
        "create_task",
        &json!({ "description": "before" }),
    );
    let copy = data.path().join("copy.db");
    let name = copy.to_str().unwrap();
    assert_eq!(printed(data.path(), &["backup", name]), name);
    call(
        &mut plexus,
        "create_task",
        &json!({ "description": "after" }),
    );

    let old = tempfile::tempdir().unwrap();
    fs::copy(&copy, old.path().join("plexus.db")).unwrap();
    let list = printed(old.path(), &["task", "list"]);
    assert!(list.contains("before") && !list.contains("after"), "{list}");

    // An existing file is not overwritten.
    let again = run(data.path(), &["backup", name]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.join("\n").contains("copy.db"), "{again:?}");
}

/// Every database is backed up; without a name, the backup is named after the time.
#[test]
fn a_backup_has_all_databases() {
    let data = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let mut command = plexus(&["backup"]);
    command
        .env(DATA_DIR, data.path())
        .env("BOSSMAN_DB_PATH", data.path().join("bossman.db"))
        .current_dir(here.path());
    let ended = Plexus::spawn(&mut command).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let [shared, tasks] = &ended.stdout[..] else {
        panic!("{ended:?}");
    };
    assert!(
        shared.starts_with("plexus-2") && shared.ends_with("Z.db"),
        "{shared}"
    );
    assert_eq!(tasks, &format!("{shared}.bossman.db"));
    for copy in [shared, tasks] {
        assert!(
            here.path().join(copy).metadata().unwrap().len() > 0,
            "{copy}"
        );
    }
}

/// If a database cannot be used, its tools fail and say why; all others work. Once it is repaired,
/// it is used without a restart. C54: the warning is on standard error.
#[test]
fn a_damaged_database_costs_only_its_tools() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("plexus.db");
    fs::write(&file, "no database at all, whatever its name says").unwrap();
    let mut plexus = served(data.path());
    let warning = plexus.wait_for_stderr("warning: ");
    assert!(warning.contains("plexus.db is damaged"), "{warning}");

    let tools = ask(&mut plexus, "tools/list", &json!({}));
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 20);
    assert_eq!(
        call(&mut plexus, "echo_once", &json!({ "message": "hi" })).0,
        "hi"
    );
    for (tool, arguments) in [
        ("create_task", json!({ "description": "lost?" })),
        ("list_tasks", json!({})),
        ("query_context", json!({ "query": "anything at all" })),
    ] {
        let (text, failed) = call(&mut plexus, tool, &arguments);
        assert!(
            failed && text.contains("plexus.db is damaged"),
            "{tool}: {text}"
        );
        assert!(text.contains("put a backup in its place"), "{tool}: {text}");
    }
    let health = |plexus: &mut Plexus| {
        let (text, failed) = call(plexus, "health_check", &json!({}));
        assert!(!failed, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let ill = health(&mut plexus);
    assert_eq!(ill["status"], "degraded", "{ill}");
    let problem = ill["problems"][0].as_str().unwrap();
    assert!(problem.contains("plexus.db is damaged"), "{problem}");
    let read = ask(
        &mut plexus,
        "resources/read",
        &json!({ "uri": "task://list" }),
    );
    assert_eq!(read["error"]["code"], -32603, "{read}");

    fs::remove_file(&file).unwrap();
    let (text, failed) = call(
        &mut plexus,
        "create_task",
        &json!({ "description": "kept" }),
    );
    assert!(!failed, "{text}");
    assert_eq!(health(&mut plexus)["status"], "healthy");
    assert!(printed(data.path(), &["task", "list"]).contains("kept"));
}

/// A command reports a damaged database at once, and leaves the file unchanged.
#[test]
fn commands_say_what_is_wrong_with_the_database() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("plexus.db");
    fs::write(&file, "no database at all, whatever its name says").unwrap();
    for command in [
        &["task", "list"][..],
        &["memory", "search", "x"],
        &["backup", "copy.db"],
    ] {
        let ended = run(data.path(), command);
        assert_eq!(ended.code, Some(1), "{command:?}");
        let said = ended.stderr.join("\n");
        assert!(said.contains("is damaged"), "{command:?}: {said}");
    }
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("no database")
    );
}

/// When the disk is full, acknowledged writes are kept, and the error says what to do.
#[cfg(unix)]
#[test]
fn a_full_disk_takes_nothing_away() {
    let data = tempfile::tempdir().unwrap();
    let mut plexus = Plexus::spawn(&mut on_a_small_disk(data.path()));
    plexus.initialize("2025-11-25");
    let context = "x".repeat(20_000);
    let mut written = 0;
    let said = loop {
        let arguments = json!({ "description": "fill", "context": context });
        match call(&mut plexus, "create_task", &arguments) {
            (_, false) => written += 1,
            (text, true) => break text,
        }
        assert!(written < 1000, "the disk has no end");
    };
    assert!(said.contains("disk"), "{said}");
    assert!(written > 0);
    assert_eq!(
        call(&mut plexus, "echo_once", &json!({ "message": "hi" })).0,
        "hi"
    );
    assert_eq!(plexus.end().code, Some(0));

    let list = printed(data.path(), &["task", "list", "--limit", "1000", "--json"]);
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(list.len(), written);
}

/// The program with a file size limit of a megabyte: writes beyond it fail, as on a full disk.
#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "the limit has to be there before the program is"
)]
fn on_a_small_disk(data: &Path) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" serve --stdio";
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_plexus")])
        .env(DATA_DIR, data)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// Bad input: two servers write to one list at the same time, and no task is lost.
#[test]
fn two_processes_write_at_once() {
    const TASKS_PER_SERVER: usize = 40;
    let data = tempfile::tempdir().unwrap();
    let mut servers = [served(data.path()), served(data.path())];
    let params = json!({ "name": "create_task", "arguments": { "description": "x" } });
    for id in 0..TASKS_PER_SERVER {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        for server in &mut servers {
            server.send(&call.to_string());
        }
    }
    for server in &servers {
        for _ in 0..TASKS_PER_SERVER {
            let answer = server.receive();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
    let list = printed(data.path(), &["task", "list", "--limit", "1000", "--json"]);
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(list.len(), 2 * TASKS_PER_SERVER);
}

/// C46: subscribers of a resource are notified when another process changes it.
#[test]
fn changes_of_other_processes_reach_subscribers() {
    let data = tempfile::tempdir().unwrap();
    let first = printed(data.path(), &["task", "add", "first"]);
    let second = printed(data.path(), &["task", "add", "second"]);
    let node = printed(data.path(), &["memory", "store", "key", "the old text"]);
    let (first, second) = (format!("task://{first}"), format!("task://{second}"));
    let node = format!("context://node/{node}");

    let mut plexus = served(data.path());
    let mut watch = |uri: &str| {
        let answer = ask(&mut plexus, "resources/subscribe", &json!({ "uri": uri }));
        assert_eq!(answer["result"], json!({}), "{uri}");
    };
    for uri in [&first, &second, &node] {
        watch(uri);
    }
    let id = first.strip_prefix("task://").unwrap();
    printed(data.path(), &["task", "done", id]);
    wait_for_update(&plexus, &first);
    printed(data.path(), &["memory", "store", "key", "the new text"]);
    wait_for_update(&plexus, &node);
    let id = second.strip_prefix("task://").unwrap();
    printed(data.path(), &["task", "done", id]);
    wait_for_update(&plexus, &second);
}

/// Waits for the notification that a resource was updated. Notifications for other resources may
/// come first, since a change just after the subscription cannot be distinguished from one just
/// before it.
fn wait_for_update(plexus: &Plexus, uri: &str) {
    loop {
        let message = plexus.receive();
        assert_eq!(message["method"], "notifications/resources/updated");
        if message["params"]["uri"] == uri {
            return;
        }
    }
}
