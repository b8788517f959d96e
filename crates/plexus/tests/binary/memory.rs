//! `plexus memory`, and the memory tools of `plexus serve`.

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
        self.start(&[&["memory"], arguments].concat()).end()
    }

    /// The output of a command that succeeds.
    fn memory(&self, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(arguments);
        assert_eq!((ended.code, ended.stderr.as_slice()), (Some(0), &[][..]));
        ended.stdout
    }
}

/// S000-55: `memory retrieve "mcp-research" --namespace "contextgraph/ghost-system"`.
#[test]
fn a_memory_is_retrieved_by_namespace_and_key() {
    let person = User::new();
    let place = ["--namespace", "contextgraph/ghost-system"];
    let store = ["store", "mcp-research", "MCP", "is", "JSON-RPC"];
    let stored = person.memory(&[&store[..], &place].concat());
    assert!(stored[0].starts_with("ctx_"), "{stored:?}");
    let retrieve = [&["retrieve", "mcp-research"], &place[..]].concat();
    assert_eq!(person.memory(&retrieve), ["MCP is JSON-RPC"]);

    let json = person.memory(&[&retrieve[..], &["--json"]].concat());
    let found: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(found["node"]["id"], stored[0]);

    let ended = person.run(&["retrieve", "mcp-research"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        ["error: context node not found: default/mcp-research"]
    );
}

#[test]
fn content_is_read_from_standard_input() {
    let person = User::new();
    let mut storing = person.start(&["memory", "store", "notes"]);
    storing.send("first line");
    storing.send("second line");
    assert_eq!(storing.end().code, Some(0));
    assert_eq!(
        person.memory(&["retrieve", "notes"]),
        ["first line", "second line"]
    );
}

#[test]
fn a_search_lists_the_best_first() {
    let person = User::new();
    for (key, content) in [
        ("window", "No deployments on \u{1b}[31mFridays"),
        ("steps", "Deployments: build,\nthen test"),
        ("lunch", "Pizza on fridays"),
    ] {
        person.memory(&["store", key, content, "--tag", "team"]);
    }
    let found = person.memory(&["search", "deployments", "Fridays"]);
    assert_eq!(
        found[0],
        "default/window  No deployments on \\u001b[31mFridays"
    );
    assert_eq!(found.len(), 3);
    assert_eq!(
        person.memory(&[
            "search", "build", "--limit", "1", "--tag", "team", "--days", "1"
        ]),
        ["default/steps  Deployments: build, then test"]
    );
    assert!(
        person
            .memory(&["search", "build", "--namespace", "other"])
            .is_empty()
    );
    let json = person.memory(&["search", "pizza", "--json"]);
    let found: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(found["results"][0]["node"]["key"], "lunch");
}

/// A memory can be deleted, and restored afterwards.
#[test]
fn memories_are_listed_forgotten_and_restored() {
    let person = User::new();
    person.memory(&["store", "first", "one"]);
    person.memory(&["store", "second", "two", "--namespace", "other"]);
    let both = ["other/second  two", "default/first  one"];
    assert_eq!(person.memory(&["list"]), both);
    assert_eq!(person.memory(&["list", "--limit", "1"]), both[..1]);
    assert_eq!(
        person.memory(&["list", "--namespace", "default"]),
        both[1..]
    );

    let forgotten = person.memory(&["forget", "first"]);
    assert!(person.memory(&["search", "one"]).is_empty());
    assert_eq!(person.run(&["forget", "first"]).code, Some(1));
    assert_eq!(person.memory(&["restore", &forgotten[0]]), forgotten);
    assert_eq!(person.memory(&["retrieve", "first"]), ["one"]);
}

/// S000-01, S000-21, S000-20, S000-22: agents can read, by its name, what a user stored.
#[test]
fn people_and_agents_share_a_memory() {
    let person = User::new();
    let mut agent = person.start(&["serve", "--stdio"]);
    agent.initialize("2025-03-26");
    person.memory(&["store", "auth", "Authentication patterns: bearer tokens"]);
    let query = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"query_context","arguments":{"query":"authentication patterns"}}}"#;
    let result = agent.ask(query)["result"].clone();
    assert_eq!(result["isError"], false);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Found 1 relevant context nodes"), "{text}");
    assert_eq!(agent.end().code, Some(0));
}

/// S000-28: `CONTEXTGRAPH_DB` names a separate file for the graph.
#[test]
fn the_graph_may_have_a_file_of_its_own() {
    let person = User::new();
    let path = person.folder.path().join("graph/context.db");
    let run = |arguments: &[&str]| {
        let mut command = plexus(arguments);
        command.env(DATA_DIR, person.folder.path());
        Plexus::spawn(command.env("CONTEXTGRAPH_DB", &path)).end()
    };
    assert_eq!(run(&["memory", "store", "key", "content"]).code, Some(0));
    assert!(path.exists());
    assert_eq!(run(&["memory", "retrieve", "key"]).stdout, ["content"]);
    assert_eq!(person.run(&["retrieve", "key"]).code, Some(1));
}

#[test]
fn invalid_arguments_are_reported() {
    let person = User::new();
    let ended = person.run(&["store", "key", "content", "--importance", "2"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, ["error: importance must be from 0 to 1"]);
    for wrong in [
        &[][..],
        &["store"],
        &["retrieve"],
        &["search"],
        &["search", "x", "--limit", "0"],
    ] {
        assert_eq!(person.run(wrong).code, Some(2), "{wrong:?}");
    }
}
