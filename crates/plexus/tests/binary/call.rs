//! `plexus tools` and `plexus call`.

use serde_json::json;

use crate::home::Home;
use crate::process::{Plexus, plexus, unread_pipe};
use crate::servers::{fixture, home};
use crate::terminal::TerminalSession;

fn home_with_both_eras() -> Home {
    home(&json!({"old": fixture("legacy"), "new": fixture("modern")}))
}

#[test]
fn tools_of_all_servers_are_listed_and_searched() {
    let home = home_with_both_eras();
    let listed = home.succeeds(&["tools"]);
    let names: Vec<_> = listed
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for name in [
        "echo_once",
        "old__test_simple_text",
        "new__test_simple_text",
    ] {
        assert!(names.contains(&name), "{name} in {listed:?}");
    }
    let found = home.succeeds(&["tools", "--search", "PICTURE", "returns", "--server", "new"]);
    let found: Vec<_> = found
        .iter()
        .map(|line| line.split_whitespace().next())
        .collect();
    // Two more tools have the words only in their descriptions.
    assert_eq!(found[0], Some("new__test_image_content"), "{found:?}");
    assert_eq!(
        home.succeeds(&["tools", "--search", "zyx"]),
        ["no tool has all these words"]
    );

    let listed = home.json_output(&["tools", "--json", "--server", "old"]);
    let tool = &listed["tools"][0];
    assert_eq!(tool["server"], "old");
    assert_eq!(
        tool["name"],
        format!("old__{}", tool["tool"].as_str().unwrap())
    );
    assert_eq!(tool["definition"]["inputSchema"]["type"], "object");
    assert_eq!(listed["failed"], json!([]));
}

#[test]
fn tools_show_their_arguments() {
    let home = Home::with(&[]);
    let brief = home.succeeds(&["tools", "--search", "echo_echo"]);
    assert_eq!(brief.len(), 1, "{brief:?}");
    let verbose = home.succeeds(&["tools", "-v", "--search", "echo_echo"]);
    assert_eq!(verbose[0], brief[0]);
    let described = |line: &str| verbose.iter().any(|shown| shown.starts_with(line));
    assert!(described("    message (string, required): "), "{verbose:?}");
    assert!(described("    count (whole number"), "{verbose:?}");
}

/// A tool of a server that cannot be started is not just unknown, and no other tool is suggested.
#[test]
fn a_tool_of_a_server_that_failed_is_said_to_be_unknown() {
    let exits = json!({"command": "sh", "args": ["-c", "exit 3"]});
    let home = home(&json!({"exits": exits, "new": fixture("modern")}));
    let said = home.fails(&["call", "exits__test_simple_text"]);
    assert!(
        said.contains("the server \"exits\" is not connected"),
        "{said}"
    );
    assert!(!said.contains("did you mean"), "{said}");
}

/// A disabled server says that it is disabled, and how to enable it, in every command.
#[test]
fn a_disabled_server_says_so() {
    let mut off = fixture("modern");
    off["disabled"] = json!(true);
    let home = home(&json!({"off": off, "new": fixture("modern")}));
    let file = home.path(".mcp.json");
    let why = format!("it is disabled in {}", file.display());
    let how = "to enable it: plexus servers toggle off --on --save";
    for command in [
        &["call", "off__test_simple_text"][..],
        &["call", "--server", "off", "test_simple_text"],
        &["prompt", "off__test_simple_prompt"],
        &["tools", "--server", "off"],
        &["resources", "--server", "off"],
        &["prompts", "--server", "off"],
    ] {
        let said = home.fails(command);
        assert!(
            said.contains(&why) && said.contains(how),
            "{command:?}: {said}"
        );
    }
    let said = home.fails(&["read", "nosuch://x"]);
    assert!(said.contains("these servers are disabled: off"), "{said}");
    for list in ["tools", "resources", "prompts"] {
        let listed = home.json_output(&[list, "--json"]);
        assert_eq!(listed["disabled"], json!(["off"]), "{list}");
        let (code, shown) = TerminalSession::start(&home, 100, &[list]).end();
        assert_eq!(code, Some(0), "{shown}");
        assert!(
            shown.contains("not listed, because disabled: off"),
            "{shown}"
        );
    }
    let status = home.succeeds(&["status"]).join("\n");
    assert!(status.contains(&why) && status.contains(how), "{status}");

    // Clients of the gateway are told as well.
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"off__test_simple_text"}}"#;
    let refused = gateway.ask(call).to_string();
    assert!(
        refused.contains("is disabled; to enable it: plexus servers toggle off --on"),
        "{refused}"
    );

    home.succeeds(&["servers", "toggle", "off", "--on", "--save"]);
    let said = home.succeeds(&["call", "off__test_simple_text"]);
    assert_eq!(said, ["This is a simple text response for testing."]);
}

/// C11: the command line accepts every spelling of the names of built-in tools.
#[test]
fn every_spelling_of_a_built_in_tool_is_understood() {
    let home = home_with_both_eras();
    for name in ["echo_once", "echo.once"] {
        assert_eq!(home.succeeds(&["call", name, "message=hello"]), ["hello"]);
    }
}

/// A server that fails is named, and does not affect the others.
#[test]
fn servers_that_cannot_be_connected_are_named() {
    let gone = json!({"command": "/no/such/program"});
    let home = home(&json!({"gone": gone, "new": fixture("modern")}));
    let listed = home.run(&["tools"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.iter().any(|line| line.starts_with("new__")));
    assert_eq!(listed.stderr.len(), 1, "{listed:?}");
    assert!(
        listed.stderr[0].starts_with("warning: gone: "),
        "{listed:?}"
    );
    let listed = home.run(&["tools", "--json"]);
    assert!(
        listed.stdout[0].contains(r#""failed":[{"server":"gone""#),
        "{listed:?}"
    );
    let said = home.fails(&["tools", "--server", "gone"]);
    assert!(
        said.contains("the server \"gone\" is not connected"),
        "{said}"
    );
    let said = home.fails(&["tools", "--server", "goen"]);
    assert!(said.contains("did you mean gone?"), "{said}");
}

/// Only the server of the tool is started.
#[test]
fn a_call_starts_only_the_server_of_its_tool() {
    let gone = json!({"command": "/no/such/program"});
    let home = home(&json!({"gone": gone, "new": fixture("modern")}));
    for name in [
        "new__test_simple_text",
        "new.test_simple_text",
        "mcp__new__test_simple_text",
    ] {
        // If the other server were started, there would be a warning.
        let said = home.succeeds(&["call", name]);
        assert_eq!(said, ["This is a simple text response for testing."]);
    }
    assert_eq!(
        home.succeeds(&["call", "echo_once", "message=hello"]),
        ["hello"]
    );
}

#[test]
fn results_of_every_kind_are_shown() {
    let home = home_with_both_eras();
    for server in ["old", "new"] {
        let call = |tool: &str, more: &[&str]| {
            let tool = format!("{server}__{tool}");
            home.run(&[&["call", tool.as_str()], more].concat())
        };
        let ended = call("test_multiple_content_types", &[]);
        assert_eq!(ended.stdout[0], "Multiple content types test:");
        assert_eq!(ended.stdout[1], "[image, image/png, 69 bytes]");

        let folder = home.path(server).join("pictures");
        let ended = call("test_image_content", &["--save", folder.to_str().unwrap()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let saved = std::fs::read(folder.join("content-1.png")).unwrap();
        assert!(saved.starts_with(b"\x89PNG"), "{ended:?}");

        let ended = call("test_error_handling", &[]);
        assert_eq!((ended.code, ended.stdout.len()), (Some(1), 0), "{ended:?}");
        assert!(ended.stderr[0].starts_with("error: This tool intentionally"));
        let ended = call("test_error_handling", &["--json"]);
        assert_eq!(ended.code, Some(1));
        assert!(ended.stdout[0].contains(r#""isError":true"#), "{ended:?}");

        let ended = call("test_structured", &["--json"]);
        assert!(ended.stdout[0].contains(r#""structuredContent":{"temperature":22.5"#));

        let ended = call("test_tool_with_logging", &[]);
        let started = format!("[info] {server}: Tool execution started");
        assert_eq!(ended.stderr[0], started, "{ended:?}");
        let ended = call("test_tool_with_logging", &["--log-level", "error"]);
        assert!(ended.stderr.is_empty(), "{ended:?}");

        let ended = call("test_streaming", &[]);
        assert_eq!(
            ended.stdout,
            ["Hello world"],
            "the pieces are not printed twice"
        );

        // Without a terminal there is no spinner, no progress bar and no colour.
        let ended = call("test_tool_with_progress", &[]);
        assert_eq!((ended.code, ended.stderr.len()), (Some(0), 0), "{ended:?}");
    }
}

#[test]
fn arguments_are_typed_by_the_schema() {
    let home = Home::with(&[]);
    let said = home.succeeds(&["call", "echo_echo", "message=7", "count=2"]);
    assert_eq!(said, ["7", "7"]);
    let said = home.succeeds(&["call", "echo_echo", "message:=\"x\"", "count:=1"]);
    assert_eq!(said, ["x"]);
    let said = home.succeeds(&[
        "call",
        "echo_once",
        "--json-args",
        r#"{"message": "hello"}"#,
    ]);
    assert_eq!(said, ["hello"]);

    let said = home.succeeds(&["call", "echo_echo", r#"{"message": "hello", "count": 2}"#]);
    assert_eq!(said, ["hello", "hello"]);

    let mut piped = Plexus::spawn(
        plexus(&["call", "echo_once", "--json-args", "-"]).env("HOME", home.path("")),
    );
    piped.send(r#"{"message": "piped"}"#);
    assert_eq!(piped.end().stdout, ["piped"]);

    for (arguments, expected) in [
        (
            &["message=x", "count=two"][..],
            "count: expected whole number, not \"two\"",
        ),
        (&["mesage=x"], "did you mean message?"),
        (&["count=1"], "missing: message (string, required)"),
        (&["message"], "write key=value"),
        (&[r#"{"message": "x""#], "the argument is not JSON"),
        (&[r#"{"message": "x"}"#, "count=1"], "write it alone"),
        (&["--json-args", "[]"], "must be an object"),
        (&["--json-args", "{"], "not JSON"),
        (&["--json-args", "{}", "message=x"], "cannot be used with"),
    ] {
        let ended = home.run(&[&["call", "echo_echo"], arguments].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.join("\n").contains(expected), "{ended:?}");
    }
    let said = home.fails(&["call", "echo_echoo", "message=x"]);
    assert!(said.contains("did you mean echo_echo?"), "{said}");
}

/// Without a terminal, a question of a server is cancelled, not answered with made-up values.
/// There is no model for sampling; the working directory is the root.
#[test]
fn without_a_terminal_questions_are_declined() {
    let home = home_with_both_eras();
    for server in ["old", "new"] {
        let call = |tool: &str, argument: &str| {
            let tool = format!("{server}__{tool}");
            let words = ["call", tool.as_str(), argument];
            home.run(&words[..if argument.is_empty() { 2 } else { 3 }])
        };
        let ended = call("test_elicitation", "message=Who are you?");
        assert_eq!(ended.stderr[0], "Who are you?", "{ended:?}");
        assert!(ended.stderr[1].contains("must be a terminal"), "{ended:?}");
        assert!(ended.stdout[0].contains("action=cancel"), "{ended:?}");
        let ended = call("test_sampling", "prompt=x");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.concat().contains("sampling"), "{ended:?}");
        let ended = call("test_roots", "");
        let root = format!("Roots: file://{}", home.path("project").display());
        assert_eq!(ended.stdout, [root], "{ended:?}");
    }
}

/// C26: a rule with "ask" asks the user; without a terminal, the call is not made, and the exit
/// code and the error say why. `--yes` agrees, but not to what is denied.
#[test]
fn policy_holds_here_too() {
    let home = Home::with(&[(
        "project/plexus.toml",
        "[policy]\nrules = [\n\
         { tool = \"echo_*\", pattern = \"*denied*\", action = \"deny\" },\n\
         { tool = \"echo_*\", action = \"ask\" },\n]\n",
    )]);
    let asked = home.run(&["call", "echo_once", "message=x"]);
    assert_eq!((asked.code, asked.stdout.len()), (Some(3), 0), "{asked:?}");
    let said = asked.stderr.join("\n");
    for expected in ["was not called", "plexus.toml", "--yes"] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let said = home.succeeds(&["call", "--yes", "echo_once", "message=x"]);
    assert_eq!(said, ["x"]);
    for arguments in [&[][..], &["--yes"]] {
        let words = [&["call", "echo_once", "message=denied"], arguments].concat();
        let said = home.fails(&words);
        assert!(said.contains("denied by the rule"), "{said}");
    }
}

/// At a terminal, the user is asked, and "always" holds without a terminal as well.
#[test]
fn consent_is_asked_for_at_a_terminal() {
    let rule = "[policy]\nrules = [{ tool = \"echo_*\", action = \"ask\" }]\n";
    let home = Home::with(&[("project/plexus.toml", rule)]);
    let call = ["call", "echo_once", "message=hello"];
    let mut terminal = TerminalSession::start(&home, 100, &call);
    terminal.shows("one of them> ");
    terminal.types("2\n");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    let said = home.start(&call).end();
    assert_eq!(
        (said.code, said.stdout),
        (Some(0), vec!["hello".to_owned()])
    );
}

/// Servers defined by a project are not started until the user approves them.
#[test]
fn servers_of_a_project_wait_for_trust() {
    let home = Home::with(&[(
        "project/.mcp.json",
        r#"{"mcpServers": {"theirs": {"command": "touch", "args": ["../started"]}}}"#,
    )]);
    let said = home.fails(&["call", "theirs__x"]);
    assert!(
        said.contains("theirs: not trusted; run plexus trust"),
        "{said}"
    );
    assert!(!home.path("started").exists());
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let home = home_with_both_eras();
    for arguments in [
        &["tools"][..],
        &["call", "echo_once", "message=x"],
        &["tools", "--json"],
    ] {
        let mut command = plexus(arguments);
        command.env("HOME", home.path("")).stdout(unread_pipe());
        let ended = Plexus::spawn(&mut command).end();
        assert_eq!((ended.code, ended.stderr.len()), (Some(0), 0), "{ended:?}");
    }
}
