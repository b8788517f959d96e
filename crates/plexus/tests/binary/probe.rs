//! `plexus probe`, with correct and faulty servers.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::process::{Plexus, ProcessOutput, plexus, unread_pipe};

/// The path of a binary of this workspace, in the directory of the tested one.
fn built(name: &str) -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_plexus")).with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing: build it with `cargo build --workspace --bins`",
        path.display()
    );
    path.display().to_string()
}

fn probe(arguments: &[&str]) -> ProcessOutput {
    let arguments = [&["probe"], arguments].concat();
    Plexus::start(&arguments).end()
}

fn json_of(ended: &ProcessOutput) -> Value {
    serde_json::from_str(&ended.stdout.concat()).expect("one JSON object")
}

/// A server that runs a script. Its control address is not used.
struct Scripted {
    _test: TcpListener,
    words: [String; 3],
}

impl Scripted {
    fn new(script: &Value) -> Self {
        let test = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = test.local_addr().unwrap().to_string();
        Self {
            _test: test,
            words: [built("scripted-server"), address, script.to_string()],
        }
    }

    fn words(&self) -> [&str; 3] {
        self.words.each_ref().map(String::as_str)
    }
}

#[test]
fn a_server_is_described() {
    let server = built("conformance-server");
    let ended = probe(&[&server, "--stdio"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    assert!(ended.stdout[0].starts_with("plexus-conformance "));
    for (label, text) in [
        (
            "speaks",
            "2026-07-28 (modern) over standard input and output",
        ),
        ("versions", "2024-11-05"),
        ("capabilities", "tools (listChanged)"),
        ("lists", " tools, "),
        ("latency", "server/discover "),
        ("instructions", "Fixtures"),
    ] {
        let line = ended
            .stdout
            .iter()
            .find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("{label} is missing: {ended:?}"));
        assert!(line.contains(text), "{line}");
    }
    assert!(!ended.stdout.concat().contains("Against"), "{ended:?}");
}

#[test]
fn json_has_it_all() {
    let server = built("conformance-server");
    for (era, revision, smallest) in [
        ("legacy", "2025-11-25", "ping"),
        ("modern", "2026-07-28", "server/discover"),
    ] {
        let ended = probe(&["--json", "--era", era, "--", &server, "--stdio"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found = json_of(&ended);
        assert_eq!(found["connected"], true);
        assert_eq!(found["transport"], "stdio");
        assert_eq!(
            (&found["era"], &found["revision"]),
            (&json!(era), &json!(revision))
        );
        assert_eq!(found["identity"]["name"], "plexus-conformance");
        assert_eq!(found["capabilities"]["resources"]["subscribe"], true);
        for list in ["tools", "resources", "resource_templates", "prompts"] {
            assert!(found["counts"][list].as_u64().unwrap() > 0, "{list}");
        }
        assert_eq!(found["latency_ms"]["round_trip_method"], smallest);
        for time in ["connect", "list", "round_trip"] {
            assert!(found["latency_ms"][time].as_f64().unwrap() > 0.0, "{time}");
        }
        assert_eq!(found["violations"], json!([]));
    }
}

#[test]
fn an_address_is_described_and_secrets_are_not_printed() {
    let server = Plexus::start(&["serve", "--http", "127.0.0.1:0"]);
    let url = server.wait_for_stderr("listening on ");
    let query = format!("{url}?key=hidden1");
    for format in [&["--json"][..], &[]] {
        let header = ["--header", "X-Key: hidden2", &query];
        let ended = probe(&[format, &header].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = ended.stdout.concat() + &ended.stderr.concat();
        assert!(said.contains(&url) && !said.contains("hidden"), "{said}");
    }
}

#[test]
fn the_stderr_tail_of_a_server_that_exits_is_shown() {
    let ends = "echo starting; echo 'no database at /nowhere' >&2; exit 3";
    let ended = probe(&["sh", "-c", ends]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
    let said = ended.stderr.concat();
    assert!(
        said.contains("code 3") && said.contains("no database at /nowhere"),
        "{said}"
    );

    let ended = probe(&["--json", "no-such-mcp-server"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = json_of(&ended);
    assert_eq!(
        (&found["connected"], &found["state"]),
        (&json!(false), &json!("failed"))
    );
    assert!(
        found["reason"]
            .as_str()
            .unwrap()
            .contains("no-such-mcp-server")
    );
    assert!(ended.stderr.concat().contains("no-such-mcp-server"));
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let server = Scripted::new(&json!({"start": [{"complain": "please sign in first"}]}));
    let ended = probe(&[&["--timeout", "1"][..], &server.words()].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = ended.stderr.concat();
    assert!(
        said.contains("within 1 s") && said.contains("please sign in first"),
        "{said}"
    );
}

/// All faults that a working server can have.
#[test]
fn faults_of_a_working_server_are_reported() {
    let refused = json!([[{"error": {"code": -32602, "message": "what?"}}]]);
    let initialized = json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "odd\u{1b}[31m", "version": "1"},
        "capabilities": {"tools": {}, "prompts": {}}, "instructions": "1\n2\n3\n4\n5"});
    let tools =
        json!({"tools": [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bad"}]});
    let server = Scripted::new(&json!({
        "start": [{"print": "Welcome\u{1b}[2J"}],
        "on": {
            "server/discover": refused,
            "initialize": [[{"result": initialized}, {"say": {"jsonrpc": "2.0", "id": 99, "result": {}}}]],
            "tools/list": [[{"result": tools}]],
            "prompts/list": [[{"error": {"code": -32603, "message": "out of prompts"}}]],
            "ping": [[{"result": {}}]],
        },
    }));
    let ended = probe(&server.words());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = ended.stdout.join("\n");
    for text in [
        "2025-06-18 (legacy)",
        "error -32602",
        "1 tool, 0 resources",
        "\"bad\" of its tools: ",
        "out of prompts",
        "lines on its output that are not JSON: 1",
        "Welcome",
        "responses to unknown requests: 1",
        "(2 more)",
    ] {
        assert!(said.contains(text), "{text} is missing:\n{said}");
    }
    assert!(
        !said.contains('\u{1b}'),
        "a server must not reach the terminal"
    );

    let found = json_of(&probe(&[&["--json"][..], &server.words()].concat()));
    let kinds = |list: &str| -> Vec<String> {
        let list = found[list].as_array().unwrap().iter();
        list.map(|entry| entry["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds("quirks"), ["refuses-discover"]);
    assert_eq!(
        kinds("violations"),
        ["unlisted", "not-json", "unknown-answer"]
    );
    assert_eq!(found["quarantined"][0]["name"], "bad");
    assert_eq!(found["instructions"], "1\n2\n3\n4\n5");
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    for arguments in [
        &[][..],
        &["--timeout", "0", "x"],
        &["--era", "stone", "x"],
        &["--header", "nonsense", "http://127.0.0.1:9/mcp"],
        &["--header", "A: b", "program"],
        &["http://127.0.0.1:9/mcp", "--json"],
        &["http://"],
    ] {
        let ended = probe(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(
            ended.stdout.is_empty() && !ended.stderr.is_empty(),
            "{ended:?}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let server = built("conformance-server");
    let mut command = plexus(&["probe", &server, "--stdio"]);
    let ended = Plexus::spawn(command.stdout(unread_pipe())).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
