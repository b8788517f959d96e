//! `--server`: commands for one server, which need not be configured.

use serde_json::json;

use crate::home::Home;
use crate::process::Plexus;
use crate::servers::{built, fixture, fixture_over_http, home};

/// A home without a usable list of servers: none is needed.
fn bare_home() -> Home {
    Home::with(&[(".mcp.json", "{oops"), ("project/.mcp.json", "{oops")])
}

/// The command of the fixture, as one argument.
fn command(era: &str) -> String {
    format!("'{}' --stdio --era \"{era}\"", built("conformance-server"))
}

#[test]
fn a_program_is_used_without_configuration() {
    let home = bare_home();
    for era in ["legacy", "modern"] {
        let command = command(era);
        let with = |words: &[&str]| home.succeeds(&[words, &["--server", &command]].concat());
        let listed = with(&["tools"]);
        let mut names = listed.iter().filter_map(|line| line.split(' ').next());
        assert!(names.any(|name| name == "test_simple_text"), "{listed:?}");
        assert!(!listed.concat().contains("echo_once"), "{listed:?}");
        let said = with(&["call", "test_simple_text"]);
        assert_eq!(said, ["This is a simple text response for testing."]);

        assert!(with(&["resources"]).concat().contains("test://static-text"));
        let read = with(&["read", "test://static-text"]);
        assert_eq!(read, ["This is the content of the static text resource."]);

        let prompt = "test_prompt_with_arguments";
        assert!(with(&["prompts"]).concat().contains(prompt));
        let got = with(&["prompt", prompt, "arg1=a", "arg2=b"]);
        assert_eq!(got, ["Prompt with arguments: arg1='a', arg2='b'"]);
    }
    let words = ["call", "test_simple_txt", "--server", &command("modern")];
    let said = home.fails(&words);
    assert!(said.contains("did you mean test_simple_text?"), "{said}");
}

#[test]
fn an_address_is_used_without_configuration() {
    let server = Plexus::spawn(&mut fixture_over_http());
    let address = server.wait_for_stderr("listening on ");
    let url = address.trim();
    let home = bare_home();
    let header = "Authorization: Bearer ${GITHUB_TOKEN}";
    let said = home.succeeds(&[
        "call",
        "--server",
        url,
        "--header",
        header,
        "test_simple_text",
    ]);
    assert_eq!(said, ["This is a simple text response for testing."]);
}

/// A configured server's name has precedence, and its tools are also found by their own names.
#[test]
fn a_configured_server_is_named() {
    let gone = json!({"command": "/no/such/program"});
    let home = home(&json!({"true": fixture("modern"), "old": fixture("legacy"), "gone": gone}));
    for name in ["test_simple_text", "true__test_simple_text"] {
        // If another server were started, there would be a warning.
        let said = home.succeeds(&["call", "--server", "true", name]);
        assert_eq!(said, ["This is a simple text response for testing."]);
    }
    let said = home.fails(&["call", "--server", "old", "true__test_simple_text"]);
    assert!(said.contains("there is no tool"), "{said}");
    let said = home.fails(&["call", "--server", "gone", "test_simple_text"]);
    assert!(said.contains("warning: gone: "), "{said}");
    assert!(
        said.contains("the server \"gone\" is not connected"),
        "{said}"
    );
    let said = home.fails(&["call", "--server", "goen", "x"]);
    assert!(said.contains("did you mean gone?"), "{said}");
    let read = home.succeeds(&["read", "--server", "old", "test://static-text"]);
    assert_eq!(read, ["This is the content of the static text resource."]);
}

#[test]
fn the_policy_holds_for_every_server() {
    let home = Home::with(&[(
        "project/plexus.toml",
        "[policy]\nrules = [{ tool = \"test_simple_*\", action = \"deny\" }]\n",
    )]);
    let said = home.fails(&["call", "--server", &command("modern"), "test_simple_text"]);
    assert!(said.contains("denied by the rule"), "{said}");
}

#[test]
fn wrong_servers_are_refused() {
    let home = home(&json!({"s": fixture("modern")}));
    for (words, expected) in [
        (&["--server", ""][..], "--server is empty"),
        (&["--server", "'a b"], "the quote ' is not closed"),
        (
            &["--server", "wss://a.example/mcp"],
            "is https://a.example/mcp meant?",
        ),
        (&["--server", "http://a.example/ b"], "takes no arguments"),
        (
            &["--server", "true x", "--header", "A: b"],
            "--header is for HTTP",
        ),
        (
            &["--server", "http://a.example/", "--header", "A"],
            "'Name: value'",
        ),
        (&["--server", "s", "--header", "A: b"], "in its definition"),
        (&["--header", "A: b"], "--server"),
    ] {
        let ended = home.run(&[&["tools"], words].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.join("\n").contains(expected), "{ended:?}");
    }
    let said = home.fails(&["tools", "--server", "./no-such-program x"]);
    assert!(said.contains("no-such-program"), "{said}");
}
