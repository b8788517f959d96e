//! `plexus status` and `plexus servers`, with and without running gateways; manual pages.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::{Value, json};

use crate::gateway::{answer, call, control, definition, echoing, file};
use crate::home::Home;
use crate::process::{Plexus, ProcessOutput};
use crate::servers::{USER, fixture, home};
use crate::terminal::TerminalSession;

fn home_with_servers() -> Home {
    home(&json!({
        "s": fixture("modern"),
        "old": fixture("legacy"),
        "gone": {"command": "sh", "args": ["-c", "echo my last words >&2; exit 3"]},
    }))
}

/// Runs a command with the data of this home directory, where gateways are found.
fn run(home: &Home, arguments: &[&str]) -> ProcessOutput {
    home.start(arguments).end()
}

fn status(home: &Home) -> Value {
    let ended = run(home, &["status", "--json"]);
    serde_json::from_str(&ended.stdout[0]).unwrap()
}

pub(crate) fn server<'a>(status: &'a Value, name: &str) -> &'a Value {
    let servers = status["gateways"][0]["servers"].as_array().unwrap();
    servers
        .iter()
        .find(|server| server["name"] == name)
        .unwrap()
}

/// A running gateway that has tried to connect all its servers.
fn gateway(home: &Home) -> Plexus {
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    // Until the gateway answers, `status` starts the servers itself.
    let pending = |status: &Value| {
        let gateway = &status["gateways"][0];
        let mut servers = gateway["servers"].as_array().unwrap().iter();
        gateway["pid"].is_null() || servers.any(|server| server["state"] == "pending")
    };
    while pending(&status(home)) {}
    gateway
}

/// S004-54, S001-43: without a gateway, `status` starts the servers itself.
#[test]
fn without_a_gateway_the_servers_are_tried() {
    let home = home_with_servers();
    let ended = run(&home, &["status"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let text = ended.stdout.join("\n");
    assert!(text.starts_with("no gateway is running"), "{text}");
    assert!(
        text.contains("2026-07-28") && text.contains("2025-11-25"),
        "{text}"
    );
    let line = ended
        .stdout
        .iter()
        .position(|line| line.starts_with("failed     gone"));
    assert!(
        ended.stdout[line.unwrap() + 2].contains("my last words"),
        "{text}"
    );

    let status = status(&home);
    assert_eq!(status["gateways"][0]["pid"], Value::Null);
    let s = server(&status, "s");
    assert_eq!(
        (&s["state"], &s["transport"]),
        (&json!("connected"), &json!("stdio"))
    );
    assert!(
        s["tools"].as_u64().unwrap() > 10 && s["pid"].is_u64(),
        "{s}"
    );
    assert_eq!(run(&Home::with(&[]), &["status"]).code, Some(0));
}

/// S004-51, S004-52: servers of a running gateway are listed and controlled.
#[test]
fn a_running_gateway_is_steered() {
    let home = home_with_servers();
    let gateway = gateway(&home);
    let before = status(&home);
    assert!(before["gateways"][0]["pid"].is_u64(), "{before}");

    let ended = run(&home, &["servers", "toggle", "s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout[0].starts_with("disabled s in gateway "),
        "{ended:?}"
    );
    let off = status(&home);
    assert_eq!(server(&off, "s")["state"], "disabled");
    // C39: its connection stays.
    assert_eq!(server(&off, "s")["pid"], server(&before, "s")["pid"]);
    let ended = run(&home, &["servers", "toggle", "s", "--on", "--json"]);
    let done: Value = serde_json::from_str(&ended.stdout[0]).unwrap();
    assert_eq!(
        (&done["server"], &done["enabled"]),
        (&json!("s"), &json!(true))
    );
    assert_eq!(server(&status(&home), "s")["state"], "connected");

    let ended = run(&home, &["servers", "reconnect", "s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout[0].starts_with("reconnected s in gateway "),
        "{ended:?}"
    );
    assert_ne!(
        server(&status(&home), "s")["pid"],
        server(&before, "s")["pid"]
    );
    let ended = run(&home, &["servers", "reconnect", "gone"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr[0].starts_with("error: gateway "), "{ended:?}");
    assert!(
        ended.stderr.concat().contains("exited with code 3"),
        "{ended:?}"
    );
    let ended = run(&home, &["servers", "toggle", "gne"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr[0].contains("did you mean gone?"), "{ended:?}");
    drop(gateway);
}

/// A reconnect that does not happen fails, and starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_may_run_is_reconnected() {
    let (theirs, off) = (echoing().await, echoing().await);
    let mut off_definition = definition(&off);
    off_definition["disabled"] = json!(true);
    let home = Home::with(&[
        (
            "project/.mcp.json",
            &file(&[("theirs", definition(&theirs))]),
        ),
        (USER, &file(&[("off", off_definition)])),
    ]);
    let without = run(&home, &["servers", "reconnect", "off"]);
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(!without.stderr.concat().contains("--save"), "{without:?}");
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    control::status(&home, &gateway);
    for (name, reason) in [
        ("theirs", "not trusted; run plexus trust"),
        (
            "off",
            "is disabled; to enable it: plexus servers toggle off --on",
        ),
    ] {
        let refused = run(&home, &["servers", "reconnect", name]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
        assert!(refused.stderr[0].starts_with("error: "), "{refused:?}");
        assert!(refused.stderr[0].contains(reason), "{refused:?}");
    }
    assert_eq!(server(&status(&home), "off")["state"], "disabled");
    assert_eq!(gateway.end().code, Some(0));
    theirs.assert_not_started_again().await;
    off.assert_not_started_again().await;
}

/// A server whose tools cannot be listed is connected, and the reason is shown wherever its tools
/// are missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_listed_says_why() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("ping")]);
    let refusal = Step::Error(json!({"code": -32603, "message": "out of order"}));
    let unlisted = StdioServer::new(Script::from(&offer).on("tools/list", [refusal])).await;
    let home = Home::with(&[(USER, &file(&[("el", definition(&unlisted))]))]);
    let ended = run(&home, &["status"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let row = ended.stdout.iter().position(|line| line.contains("  el  "));
    let row = row.unwrap();
    assert!(ended.stdout[row].starts_with("connected"), "{ended:?}");
    assert!(ended.stdout[row + 1].contains("out of order"), "{ended:?}");

    let ended = run(&home, &["tools"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr[0].starts_with("warning: el: "), "{ended:?}");
    assert!(ended.stderr[0].contains("out of order"), "{ended:?}");
    let ended = run(&home, &["call", "el__ping"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = ended.stderr.last().unwrap();
    assert!(
        error.starts_with("error: the tool \"el__ping\""),
        "{ended:?}"
    );
    assert!(error.contains("out of order"), "{ended:?}");

    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    gateway.send(&call("el__ping", 1));
    let refused = answer(&gateway, &json!(1));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("out of order"), "{refused}");
    assert_eq!(gateway.end().code, Some(0));
}

/// A server that is missing because its definition is invalid does not work.
#[test]
fn an_invalid_definition_is_a_failure() {
    let home = home(&json!({"bad": {"command": 7}}));
    let ended = run(&home, &["status"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    control::status(&home, &gateway);
    let ended = run(&home, &["status"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout[0].starts_with("gateway "), "{ended:?}");
    drop(gateway);
}

/// While a server that failed is started again, its status has the reason of the failure.
#[test]
fn a_failing_server_is_not_hidden_by_its_next_start() {
    let script = "test -e started && exec sleep 600; touch started; echo no key >&2; exit 3";
    let home = home(&json!({
        "mute": {"command": "sh", "args": ["-c", script], "era": "legacy"},
    }));
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    let is_hanging = |status: &Value| {
        let servers = status["servers"].as_array().unwrap();
        let mut servers = servers.iter().filter(|server| server["name"] == "mute");
        let mute = servers.next().unwrap();
        mute["state"] == "pending" && mute["last_error"].is_object()
    };
    while !is_hanging(&control::status(&home, &gateway)) {}
    let ended = run(&home, &["status"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let text = ended.stdout.join("\n");
    assert!(text.contains("pending"), "{text}");
    assert!(text.contains("starting again; before: "), "{text}");
    assert!(text.contains("no key"), "{text}");
    drop(gateway);
}

/// C38: `set`, and `toggle` with `--save`, change the server in the file that defines it, and nothing
/// else there.
#[test]
fn definitions_are_replaced_where_they_stand() {
    let home = home_with_servers();
    let gateway = gateway(&home);
    let definition = fixture("legacy").to_string();
    let ended = run(&home, &["servers", "set", "s", &definition]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.json(USER)["mcpServers"]["s"], fixture("legacy"));
    while server(&status(&home), "s")["revision"] != "2025-11-25" {}

    let ended = run(&home, &["servers", "toggle", "s", "--off", "--save"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.json(USER)["mcpServers"]["s"]["disabled"], true);
    drop(gateway);
    // Without a gateway, only the file is changed.
    let ended = run(&home, &["servers", "toggle", "s"]);
    assert!(
        ended.stderr[0].contains("no gateway is running"),
        "{ended:?}"
    );
    let ended = run(&home, &["servers", "toggle", "s", "--save"]);
    assert!(ended.stdout[0].starts_with("enabled s in "), "{ended:?}");
    assert_eq!(home.json(USER)["mcpServers"]["s"], fixture("legacy"));

    let before = home.read(USER);
    for (arguments, code, expected) in [
        (["s", "{"], 2, "not JSON"),
        (["s", "[]"], 1, "an object is expected"),
        (["s", r#"{"url": "nowhere"}"#], 1, "url: not an http"),
        (
            ["t", r#"{"command": "x"}"#],
            1,
            "no file has a server \"t\"",
        ),
    ] {
        let ended = run(&home, &[&["servers", "set"][..], &arguments].concat());
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.concat().contains(expected), "{ended:?}");
        assert_eq!(home.read(USER), before);
    }
}

#[test]
fn changes_are_shown_while_they_happen() {
    let home = home_with_servers();
    let gateway = gateway(&home);
    let mut watching = TerminalSession::start(&home, 80, &["status", "--watch"]);
    watching.shows("connected");
    run(&home, &["servers", "toggle", "s", "--off"]);
    // The screen is redrawn from the top.
    watching.shows("\u{1b}[H\u{1b}[J");
    watching.shows("disabled");
    watching.interrupt();
    assert_eq!(watching.end().0, Some(130));

    let watching = home.start(&["status", "--watch", "--json"]);
    let mut lines = std::iter::from_fn(|| Some(watching.line()));
    let line = lines.find(|line| line.contains(r#""name":"s""#)).unwrap();
    assert!(line.contains("disabled"), "{line}");
    run(&home, &["servers", "toggle", "s", "--on"]);
    let line = lines.find(|line| line.contains(r#""name":"s""#)).unwrap();
    assert!(line.contains("connected"), "{line}");
    drop(gateway);
}

/// A watch that began without a gateway shows the first one that starts, instead of servers of its
/// own, which it closes.
#[test]
fn a_watch_changes_to_a_gateway_that_starts() {
    let home = home(&json!({"s": fixture("modern")}));
    let watching = home.start(&["status", "--watch", "--json"]);
    let mut changes = std::iter::from_fn(|| Some(watching.line()))
        .map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .filter(|change| change["name"] == "s");
    let is_shown = |change: &Value| change["server"].is_object();
    let is_own = |change: &Value| change["gateway"].is_null();
    changes.find(|change| is_own(change) && change["server"]["state"] == "connected");
    let mut gateway = home.start(&["serve", "--stdio"]);
    gateway.initialize("2025-11-25");
    // The gateway's server is shown, and the one that the watch started is gone, in any order.
    let (mut is_gone, mut is_replaced) = (false, false);
    while !(is_gone && is_replaced) {
        let change = changes.next().unwrap();
        is_gone |= is_own(&change) && !is_shown(&change);
        is_replaced |= change["gateway"] == gateway.pid() && is_shown(&change);
    }
    assert_eq!(gateway.end().code, Some(0));
}

/// A server that waits for its next start says when that is; a command that closes its servers
/// promises no further start.
#[test]
fn the_next_attempt_is_shown() {
    let home = home(&json!({
        "gone": {"command": "sh", "args": ["-c", "exit 3"]},
    }));
    let ended = run(&home, &["status"]);
    let text = ended.stdout.join("\n");
    assert!(text.contains("exited with code 3"), "{text}");
    assert!(!text.contains("the next attempt"), "{text}");

    let gateway = gateway(&home);
    let failed = loop {
        let status = control::status(&home, &gateway);
        let mut servers = status["servers"].as_array().unwrap().iter();
        let gone = servers.find(|server| server["name"] == "gone").unwrap();
        if gone["state"] == "failed" {
            break gone.clone();
        }
    };
    assert!(failed["next_attempt_in_ms"].is_u64(), "{failed}");
    let text = loop {
        let text = run(&home, &["status"]).stdout.join("\n");
        if text.contains("failed     gone") {
            break text;
        }
    };
    assert!(text.contains("the next attempt is in "), "{text}");
    drop(gateway);
}

/// `--mcp-config` shows the servers of that file, also while a gateway without them is running.
#[test]
fn the_servers_of_a_named_file_are_shown() {
    let home = home(&json!({"s": fixture("modern")}));
    let named = json!({"mcpServers": {"extra": fixture("legacy")}});
    home.write("more.json", &named.to_string());
    let file = home.path("more.json");
    let file = file.to_str().unwrap();
    let gateway = gateway(&home);
    let ended = run(&home, &["status", "--mcp-config", file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let title = &ended.stdout[0];
    assert!(title.starts_with("the servers of "), "{title}");
    assert!(title.contains("more.json"), "{title}");
    let has_extra = |line: &String| line.starts_with("connected  extra");
    assert!(ended.stdout.iter().any(has_extra), "{ended:?}");
    drop(gateway);
}

/// C38: the same for a server of a file that the gateway was started with, or that is named here.
#[test]
fn a_server_of_a_named_file_is_changed_there() {
    let home = home(&json!({"s": fixture("modern")}));
    let named = json!({"mcpServers": {"extra": fixture("legacy")}});
    home.write("more.json", &named.to_string());
    let file = home.path("more.json");
    let file = file.to_str().unwrap();
    let mut gateway = home.start(&["serve", "--stdio", "--mcp-config", file]);
    gateway.initialize("2025-11-25");
    control::status(&home, &gateway);
    let ended = run(&home, &["servers", "toggle", "extra", "--off", "--save"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout[0].ends_with("more.json"), "{ended:?}");
    assert_eq!(
        home.json("more.json")["mcpServers"]["extra"]["disabled"],
        true
    );
    let definition = fixture("modern").to_string();
    let ended = run(&home, &["servers", "set", "extra", &definition]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        home.json("more.json")["mcpServers"]["extra"],
        fixture("modern")
    );
    assert_eq!(gateway.end().code, Some(0));

    let ended = run(&home, &["servers", "toggle", "extra", "--off", "--save"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let toggle = ["servers", "toggle", "extra", "--save", "--mcp-config", file];
    let ended = run(&home, &toggle);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        home.json("more.json")["mcpServers"]["extra"]["disabled"],
        true
    );
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let home = Home::with(&[]);
    let folder = home.path("man");
    home.succeeds(&["man", folder.to_str().unwrap()]);
    for (page, text) in [
        ("plexus-call.1", "wrong arguments of the tool"),
        ("plexus-servers-set.1", "Replace"),
    ] {
        let page = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(page.starts_with(".ie") && page.contains(text), "{page}");
    }
    assert!(
        home.succeeds(&["man"])
            .iter()
            .any(|line| line.contains("SUBCOMMANDS"))
    );
}

/// Every command has examples and lists its exit codes; the completions know all commands.
#[test]
fn help_says_how() {
    let home = Home::with(&[]);
    let commands = [
        "tools",
        "call",
        "resources",
        "read",
        "subscribe",
        "prompts",
        "prompt",
        "explain",
        "doctor",
        "status",
        "servers",
        "man",
    ];
    let script = home.succeeds(&["completions", "bash"]).join("\n");
    for command in commands {
        let help = home.succeeds(&[command, "--help"]).join("\n");
        assert!(help.contains("Examples:"), "{command}");
        assert!(help.contains("The exit code is 0"), "{command}");
        assert!(help.contains("--json"), "{command}");
        assert!(
            script.contains(&format!("plexus__subcmd__{command}"))
                || script.contains(&format!("plexus,{command})")),
            "{command}"
        );
    }
}
