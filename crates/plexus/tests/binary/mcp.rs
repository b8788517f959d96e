//! `plexus mcp`: C24, C25, S000-24 to S000-32.

use serde_json::json;

use crate::home::Home;

const LOCAL: &str = "project/.claude/settings.local.json";
const PROJECT: &str = "project/.mcp.json";
const USER: &str = ".config/plexus/servers.json";

/// S000-29, C25: each scope has its file, and each transport its format.
#[test]
fn adding_writes_to_the_file_of_the_scope() {
    let home = Home::with(&[]);
    let said = home.succeeds(&[
        "mcp", "add", "git", "-e", "A=b=c", "--", "mcp-git", "-y", "--json",
    ]);
    let file = home.path(LOCAL);
    assert_eq!(
        said,
        [format!("added git: {} (local scope)", file.display())]
    );
    assert_eq!(
        home.json(LOCAL),
        json!({"mcpServers": {"git": {
            "type": "stdio", "command": "mcp-git", "args": ["-y", "--json"], "env": {"A": "b=c"}
        }}})
    );

    // Options may stand before the name and after the address, as for `claude mcp add`.
    home.succeeds(&[
        "mcp",
        "add",
        "--scope",
        "project",
        "--transport",
        "sse",
        "old",
        "https://example.com/sse",
    ]);
    home.succeeds(&[
        "mcp",
        "add",
        "-s",
        "user",
        "new",
        "https://example.com/mcp",
        "--header",
        "Authorization: Bearer ${GITHUB_TOKEN}",
    ]);
    assert_eq!(
        home.json(PROJECT)["mcpServers"]["old"],
        json!({"type": "sse", "url": "https://example.com/sse"})
    );
    assert_eq!(
        home.json(USER)["mcpServers"]["new"],
        json!({
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}
        })
    );
}

/// S000-30: unknown members are written unchanged.
#[test]
fn a_definition_in_json_is_added_as_it_is() {
    let home = Home::with(&[(
        PROJECT,
        r#"{"other": 1.50, "mcpServers": {"a": {"url": "http://a/"}}}"#,
    )]);
    let definition = r#"{"command": "x", "future": {"exact": 2.50}}"#;
    let changed = home.json_output(&[
        "mcp", "add-json", "b", definition, "--scope", "project", "--json",
    ]);
    let file = home.path(PROJECT);
    let expected = json!({"name": "b", "changed": [{"scope": "project", "file": file}]});
    assert_eq!(changed, expected);
    let text = home.read(PROJECT);
    assert!(text.contains("1.50") && text.contains("2.50"), "{text}");
    assert_eq!(home.json(PROJECT)["mcpServers"]["a"]["url"], "http://a/");
}

/// S000-31, S001-D05: precedence, scopes and problems are shown, and no secret is.
#[test]
fn listing_shows_all_but_secrets() {
    let home = Home::with(&[
        (
            LOCAL,
            r#"{"mcpServers": {"git": {"command": "mine", "args": ["--token", "hunter2"], "env": {"T": "hunter2"}}}}"#,
        ),
        (
            PROJECT,
            r#"{"mcpServers": {"git": {"command": "theirs"}, "bad\u001b[2J": {"args": []}}}"#,
        ),
        (
            USER,
            r#"{"mcpServers": {"web": {"url": "https://u:hunter2@example.com/mcp?key=hunter2", "headers": {"X": "${GITHUB_TOKEN}"}, "disabled": true, "extra": "hunter2"}}}"#,
        ),
        (".claude/settings.local.json", "{oops"),
    ]);
    let listed = home.run(&["mcp", "list"]);
    assert_eq!(listed.code, Some(0));
    let (local, user) = (home.path(LOCAL), home.path(USER));
    assert_eq!(
        listed.stdout,
        [
            format!(
                "git  stdio  mine --token '••••'  (local, {}, not trusted; run plexus trust)",
                local.display()
            ),
            format!(
                "web  http  https://••••@example.com/mcp?key=••••  (user, {}, disabled)",
                user.display()
            ),
            format!(
                "bad\\u001b[2J  not available: there is neither a command nor a url  ({})",
                home.path(PROJECT).display()
            ),
        ]
    );
    assert_eq!(listed.stderr.len(), 2, "{listed:?}");
    let said = listed.stderr.join("\n");
    assert!(said.contains("neither a command nor a url"), "{said}");
    assert!(said.contains("settings.local.json:1:2: not JSON"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");

    let listed = home.json_output(&["mcp", "list", "--json"]);
    assert_eq!(listed["servers"][0]["definition"]["env"]["T"], "••••");
    assert_eq!(listed["servers"][1]["scope"], "user");
    assert_eq!(listed["problems"][0]["key"], "command");
    let got = home.succeeds(&["mcp", "get", "web"]).join("\n");
    assert!(got.contains("headers: {\"X\":\"••••\"}"), "{got}");
    let got_json = home
        .json_output(&["mcp", "get", "web", "--json"])
        .to_string();
    for shown in [listed.to_string(), got, got_json] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

/// S004-K107.
#[test]
fn an_empty_server_list_names_the_add_command() {
    let listed = Home::with(&[]).succeeds(&["mcp", "list"]);
    assert!(listed[0].contains("plexus mcp add --help"), "{listed:?}");
}

/// S000-32, S004-K060: if several scopes have the name, the error asks for `--scope`.
#[test]
fn removing_needs_to_know_which() {
    let text = r#"{"mcpServers": {"git": {"command": "x"}}, "keep": true}"#;
    let home = Home::with(&[(LOCAL, text), (USER, text)]);
    let said = home.fails(&["mcp", "remove", "git"]);
    assert!(
        said.contains("local") && said.contains("user") && said.contains("--scope"),
        "{said}"
    );
    home.succeeds(&["mcp", "remove", "git", "--scope", "user"]);
    assert_eq!(home.json(USER), json!({"mcpServers": {}, "keep": true}));
    home.succeeds(&["mcp", "remove", "git"]);
    assert_eq!(home.json(LOCAL), json!({"mcpServers": {}, "keep": true}));
    let said = home.fails(&["mcp", "remove", "git"]);
    assert!(said.contains("there is no server \"git\""), "{said}");
    let said = home.fails(&["mcp", "get", "git"]);
    assert!(said.contains("plexus mcp list"), "{said}");
}

/// An invalid definition is not written. Errors name the file, the server and the key, and contain
/// no secret.
#[test]
fn invalid_definitions_are_not_added() {
    let home = Home::with(&[(PROJECT, r#"{"mcpServers": {"Git": {"command": "x"}}}"#)]);
    let before = home.read(PROJECT);
    let add_json =
        |name, definition| home.fails(&["mcp", "add-json", name, definition, "-s", "project"]);
    let cases = [
        ("a", "{\"command\": \"hunter2", "definition of \"a\""),
        ("a", "[\"hunter2\"]", "an object is expected"),
        ("a", r#"{"url": "hunter2"}"#, "\"a\": url: not an http"),
        (
            "a",
            r#"{"command": "x", "env": ["hunter2"]}"#,
            "\"a\": env: ",
        ),
        ("", r#"{"command": "x"}"#, "the name is empty"),
        (
            "git",
            r#"{"command": "x"}"#,
            "there is a server \"Git\" already",
        ),
    ];
    for (name, definition, expected) in cases {
        let said = add_json(name, definition);
        assert!(said.contains(expected), "{definition}: {said}");
        assert!(!said.contains("hunter2"), "{definition}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(home.read(PROJECT), before);
    }
    // A file that cannot be parsed is not overwritten.
    std::fs::write(home.path(PROJECT), "{oops").unwrap();
    let said = add_json("a", r#"{"command": "x"}"#);
    assert!(said.contains(".mcp.json:1:2: not JSON"), "{said}");
    assert_eq!(home.read(PROJECT), "{oops");
}

#[test]
fn adding_an_unusable_server_prints_a_warning() {
    let home = Home::with(&[]);
    let add = |name, scope, word| {
        let ended = home.run(&["mcp", "add", name, "-s", scope, "--", "x", word]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stderr.join("\n")
    };
    let said = add("a", "local", "${NOT_SET_ANYWHERE}");
    assert!(
        said.starts_with("warning: ") && said.contains("NOT_SET_ANYWHERE"),
        "{said}"
    );
    let said = home.fails(&["mcp", "get", "a"]);
    assert!(said.contains("NOT_SET_ANYWHERE is not set"), "{said}");
    assert_eq!(add("b", "local", "y"), "");
    let said = add("b", "user", "z");
    assert!(said.contains("has precedence"), "{said}");
    assert_eq!(add("c", "project", "y"), "");
    let said = add("c", "local", "z");
    let project = home.path(PROJECT);
    let expected = format!("takes precedence over \"c\" in {}", project.display());
    assert!(said.contains(&expected), "{said}");
}

/// C25: anything else is a usage error.
#[test]
fn wrong_usage_is_told_without_secrets() {
    let home = Home::with(&[]);
    for wrong in [
        &["mcp"][..],
        &["mcp", "add"],
        &["mcp", "add", "x"],
        &["mcp", "add", "x", "--scope", "explicit", "--", "y"],
        &["mcp", "add", "x", "--transport", "ws", "ws://y"],
        &["mcp", "add", "x", "--transport", "http", "npx"],
        &["mcp", "add", "x", "--transport", "stdio", "https://y/"],
        &["mcp", "add", "x", "https://y/", "z"],
        &["mcp", "add", "x", "ftp://y"],
        &["mcp", "add", "x", "http:/y"],
        &["mcp", "add", "x", "--", "ftp://y"],
        &["mcp", "add", "x", "https://y/", "-e", "A=hunter2"],
        &["mcp", "add", "x", "https://y/", "-H", "hunter2"],
        &["mcp", "add", "x", "-e", "hunter2", "--", "y"],
        &["mcp", "add", "x", "-e", "=hunter2", "--", "y"],
        &["mcp", "add", "x", "-H", "A: hunter2", "--", "y"],
        &["mcp", "add-json", "x"],
        &["mcp", "remove"],
    ] {
        let ended = home.run(wrong);
        assert_eq!(ended.code, Some(2), "{wrong:?}");
        assert!(!ended.stderr.concat().contains("hunter2"), "{ended:?}");
    }
    assert!(!home.path(LOCAL).exists());
    let said = home.run(&["mcp", "add", "x", "ftp://y"]).stderr.join("\n");
    assert!(said.contains("http:// or https://"), "{said}");
    assert!(said.contains("Usage: plexus mcp add "), "{said}");
}

/// A URL of another kind is refused, and the error says what is meant.
#[test]
fn wrong_urls_say_what_is_meant() {
    let home = Home::with(&[]);
    for (words, meant) in [
        (
            &["ws://a.example/mcp"][..],
            "no WebSocket transport; is http://a.example/mcp meant?",
        ),
        (&["wss://a.example/mcp"], "is https://a.example/mcp meant?"),
        (&["http:/foo"], "is http://foo meant?"),
        (
            &["--transport", "http", "wss://a.example/mcp"],
            "is https://a.example/mcp meant?",
        ),
        (&["wss://u:hunter2@a.example/"], "write https://HOST/PATH"),
    ] {
        let ended = home.run(&[&["mcp", "add", "x"], words].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said = ended.stderr.join("\n");
        assert!(said.contains(meant) && !said.contains("hunter2"), "{said}");
    }
    assert!(!home.path(LOCAL).exists());
}

/// Commands are quoted as for a shell, so that different commands look different.
#[test]
fn commands_are_quoted() {
    let home = Home::with(&[]);
    home.succeeds(&["mcp", "add", "one", "-s", "user", "--", "x", "a b"]);
    home.succeeds(&["mcp", "add", "two", "-s", "user", "--", "x", "a", "b"]);
    let listed = home.succeeds(&["mcp", "list"]);
    assert!(
        listed[0].starts_with("one  stdio  x 'a b'  ("),
        "{listed:?}"
    );
    assert!(listed[1].starts_with("two  stdio  x a b  ("), "{listed:?}");
}

#[test]
fn help_has_examples() {
    for (arguments, expected) in [
        (["mcp", "--help"], "plexus mcp add git -- "),
        (["import", "--help"], "plexus import --undo"),
    ] {
        let help = Home::with(&[]).succeeds(&arguments).join("\n");
        assert!(help.contains(expected), "{help}");
    }
}
