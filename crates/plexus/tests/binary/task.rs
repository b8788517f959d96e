//! `plexus task`, and the task tools of `plexus serve`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{DATA_DIR, Plexus, ProcessOutput, plexus};

/// A user with a data directory.
struct User {
    folder: TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn start(&self, arguments: &[&str]) -> Plexus {
        Plexus::spawn(plexus(arguments).env(DATA_DIR, self.folder.path()))
    }

    fn run(&self, arguments: &[&str]) -> ProcessOutput {
        self.start(arguments).end()
    }

    /// The output of a command that succeeds.
    fn task(&self, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(&[&["task"], arguments].concat());
        assert_eq!((ended.code, ended.stderr.as_slice()), (Some(0), &[][..]));
        ended.stdout
    }

    fn add(&self, arguments: &[&str]) -> String {
        let mut printed = self.task(&[&["add"], arguments].concat());
        assert_eq!(printed.len(), 1);
        printed.remove(0)
    }
}

#[test]
fn a_list_is_kept_from_one_run_to_the_next() {
    let person = User::new();
    let lawn = person.add(&["Mow", "the", "lawn", "--priority", "2"]);
    let rake = person.add(&["Rake it", "--after", &lawn, "--priority", "1"]);
    let blades = person.add(&["Sharpen\nthe \u{1b}[31mblades", "--parent", &lawn]);

    assert_eq!(
        person.task(&["list"]),
        [
            format!("[ ] {rake}  Rake it  (priority 1, after 1 other)"),
            format!("[ ] {lawn}  Mow the lawn  (priority 2)"),
            format!("[ ] {blades}  Sharpen the \\u001b[31mblades  (priority 3)"),
        ]
    );
    assert_eq!(
        person.task(&["tree"]),
        [
            format!("[ ] {rake}  Rake it  (priority 1, after 1 other)"),
            format!("[ ] {lawn}  Mow the lawn  (priority 2)"),
            format!("  [ ] {blades}  Sharpen the \\u001b[31mblades  (priority 3)"),
        ]
    );
    assert!(person.task(&["next"])[0].contains("Mow the lawn"));
    let done = person.task(&["done", &lawn, "--result", "Short grass"]);
    assert_eq!(done, [format!("[x] {lawn}  Mow the lawn  (priority 2)")]);
    // The task is no longer pending.
    assert_eq!(
        person.task(&["next", "--limit", "1"]),
        [format!("[ ] {rake}  Rake it  (priority 1)")]
    );
    assert_eq!(person.task(&["list", "--limit", "1"])[1], "and 2 more");

    let json = person.task(&["list", "--status", "completed", "--json"]);
    let completed: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(completed[0]["result"], "Short grass");
    assert!(completed[0]["completed_at"].is_string());
}

/// A task is shown with its subtasks, and deleted with them.
#[test]
fn a_task_is_shown_and_deleted() {
    let person = User::new();
    let lawn = person.add(&["Mow the lawn", "--context", "The mower\nis in the shed"]);
    let rake = person.add(&["Rake it", "--after", &lawn, "--parent", &lawn]);
    person.task(&["done", &rake, "--result", "Tidy"]);
    let shown = person.task(&["show", &lawn]);
    assert_eq!(shown[0], format!("[ ] {lawn}  Mow the lawn  (priority 3)"));
    assert_eq!(
        shown[shown.len() - 3..],
        ["Context:", "The mower", "is in the shed"]
    );
    let shown = person.task(&["show", &rake]);
    for line in [
        &format!("  part of {lawn}"),
        &format!("  after {lawn}"),
        "Tidy",
    ] {
        assert!(shown.iter().any(|shown| shown == line), "{line}: {shown:?}");
    }

    let refused = person.run(&["task", "delete", &lawn]);
    assert_eq!(refused.code, Some(1));
    let why = format!("error: task {lawn} has parts (1); to delete them too, use --cascade");
    assert_eq!(refused.stderr, [why]);
    assert_eq!(person.task(&["delete", &lawn, "--cascade"]), [lawn, rake]);
    assert!(person.task(&["tree"]).is_empty());
}

/// Tasks that a user adds are visible to agents, and the other way round.
#[test]
fn people_and_agents_share_a_list() {
    let person = User::new();
    let mut agent = person.start(&["serve", "--stdio"]);
    agent.initialize("2025-11-25");
    let lawn = person.add(&["Mow the lawn"]);
    let claim = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim_task","arguments":{"owner":"ann"}}}"#;
    let claimed = agent.ask(claim);
    let task = &claimed["result"]["structuredContent"];
    assert_eq!(task["id"], lawn);
    let shown = person.task(&["list", "--status", "in_progress"]);
    assert_eq!(
        shown,
        [format!(
            "[>] {lawn}  Mow the lawn  (priority 3, claimed by ann)"
        )]
    );
    assert_eq!(agent.end().code, Some(0));
}

#[test]
fn invalid_arguments_are_reported() {
    let person = User::new();
    let ended = person.run(&["task", "done", "task_xyz"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, ["error: task not found: task_xyz"]);
    for wrong in [
        &["task"][..],
        &["task", "add"],
        &["task", "add", "x", "--priority", "6"],
        &["task", "list", "--status", "done"],
        &["task", "list", "--limit", "0"],
    ] {
        assert_eq!(person.run(wrong).code, Some(2), "{wrong:?}");
    }
    // A command that fails has changed nothing.
    let ended = person.run(&["task", "add", "x", "--after", "task_xyz"]);
    assert_eq!(ended.code, Some(1));
    assert!(person.task(&["list"]).is_empty());
}

/// Bad input: a database that cannot be used is named, with what to do about it.
#[test]
fn a_damaged_database_is_told() {
    let person = User::new();
    let path = person.folder.path().join("plexus.db");
    fs::write(&path, "not a database, ".repeat(1000)).unwrap();
    // A server has other tools, too, and continues.
    for (command, code) in [(&["task", "list"][..], 1), (&["serve", "--stdio"], 0)] {
        let ended = person.run(command);
        assert_eq!(ended.code, Some(code), "{command:?}");
        let said = ended.stderr.concat();
        assert!(said.contains("plexus.db is damaged"), "{said}");
        assert!(said.contains("put a backup in its place"), "{said}");
    }
}

/// `BOSSMAN_DB_PATH` names a separate file for tasks.
#[test]
fn tasks_may_have_a_file_of_their_own() {
    let person = User::new();
    let path = person.folder.path().join("bossman.db");
    let run = |arguments: &[&str]| {
        let mut command = plexus(arguments);
        command.env(DATA_DIR, person.folder.path());
        Plexus::spawn(command.env("BOSSMAN_DB_PATH", &path)).end()
    };
    assert_eq!(run(&["task", "add", "x"]).code, Some(0));
    assert!(path.exists());
    assert_eq!(run(&["task", "list"]).stdout.len(), 1);
    assert!(person.task(&["list"]).is_empty());
}
