//! Permissions in settings files, and how they combine with `plexus.toml`.

use serde_json::{Value, json};

use crate::gateway::{answer, definition, echoing, file, until_tools};
use crate::home::Home;
use crate::process::Plexus;

const MY_TOML: &str = ".config/plexus/plexus.toml";
const MINE: &str = ".claude/settings.json";
const SHARED: &str = "project/.claude/settings.json";
const LOCAL: &str = "project/.claude/settings.local.json";

/// The settings of Claude Code with these permissions.
fn settings(permissions: &Value) -> String {
    json!({"model": "opus", "permissions": permissions}).to_string()
}

/// Calls the tool with this text, and returns why it was refused; `None` if it was called.
fn refusal(plexus: &mut Plexus, tool: &str, text: &str) -> Option<String> {
    let params = json!({"name": tool, "arguments": {"text": text}});
    let request = json!({"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params});
    plexus.send(&request.to_string());
    let said = answer(plexus, &json!(text));
    if said["result"]["echo"]["arguments"]["text"] == text {
        return None;
    }
    assert_eq!(said["result"]["isError"], true, "{said}");
    Some(
        said["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned(),
    )
}

fn serve(home: &Home) -> Plexus {
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    plexus
}

/// S001-12, S001-14, C29: both forms of the user's permissions hold, beside `plexus.toml`, and a
/// change of the file holds at once. Rules for tools of the client are no problem.
#[tokio::test(flavor = "multi_thread")]
async fn permissions_in_settings_files_hold() {
    let server = echoing().await;
    let servers = file(&[("a", definition(&server))]);
    let lists = json!({"deny": ["mcp__a", "Bash(rm:*)"], "allow": ["Read(./**)", "mcp__a__work"]});
    let home = Home::with(&[(".mcp.json", &servers), (MINE, &settings(&lists))]);
    let mut plexus = serve(&home);
    let refused = refusal(&mut plexus, "a__work", "1").unwrap();
    assert!(
        refused.contains("tool = \"mcp__a__*\"") && refused.contains(MINE),
        "{refused}"
    );

    let rules = json!([
        {"tool": "mcp__a__*", "pattern": "*secret*", "action": "deny"},
        {"tool": "mcp__a__work", "action": "allow"},
        {"tool": "*", "action": "deny", "when": "always"},
    ]);
    home.write(MINE, &settings(&rules));
    let said = plexus.wait_for_stderr("warning: ");
    assert!(
        said.contains("permissions[2]: unknown field `when`"),
        "{said}"
    );
    assert!(
        said.contains("only tools that a rule allows can be used"),
        "{said}"
    );
    assert_eq!(refusal(&mut plexus, "a__work", "2"), None);
    assert!(refusal(&mut plexus, "a__work", "a secret").is_some());
    // A rule that cannot be understood is not ignored.
    let refused = refusal(&mut plexus, "echo_once", "3").unwrap();
    assert!(refused.contains("dont-ask"), "{refused}");
    let ended = plexus.end();
    assert_eq!((ended.code, ended.stderr.len()), (Some(0), 0), "{ended:?}");
}

/// The files of a project only make the policy stricter. What they allow holds once the user has
/// approved it, until it changes or the approval is revoked.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_project_allows_waits_for_approval() {
    let server = echoing().await;
    let allowing = settings(&json!({"allow": ["mcp__a__work"], "deny": ["mcp__b"]}));
    let home = Home::with(&[
        (".mcp.json", &file(&[("a", definition(&server))])),
        (MY_TOML, "[policy]\nmode = \"dont-ask\"\n"),
        (SHARED, &allowing),
        (
            LOCAL,
            &settings(&json!([{"tool": "*", "pattern": "*never*", "action": "deny"}])),
        ),
    ]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    let said = plexus.wait_for_stderr("warning: ");
    assert!(
        said.contains(SHARED) && said.contains("plexus trust"),
        "{said}"
    );
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    assert!(refusal(&mut plexus, "a__work", "1").is_some());

    let unapproved = home.start(&["trust"]).end();
    assert_eq!(unapproved.code, Some(1), "{unapproved:?}");
    let shown = unapproved.stdout.join("\n");
    for expected in [
        "+ permissions  ",
        "    deny mcp__b__*",
        "    allow mcp__a__work",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert!(
        !shown.contains("settings.local.json"),
        "it allows nothing: {shown}"
    );
    let doctor = home.start(&["doctor", "--offline"]).end();
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let advised = doctor.stdout.join(" ");
    assert!(advised.contains("approve them: plexus trust"), "{advised}");

    assert_eq!(home.start(&["trust", "--yes"]).end().code, Some(0));
    assert_eq!(refusal(&mut plexus, "a__work", "2"), None);
    let refused = refusal(&mut plexus, "a__work", "never").unwrap();
    assert!(refused.contains("settings.local.json"), "{refused}");
    let listed = home.start(&["trust", "--list"]).end();
    assert!(
        listed.stdout.concat().contains("permissions  "),
        "{listed:?}"
    );

    // A changed file needs a new approval.
    home.write(
        SHARED,
        &settings(&json!({"allow": ["mcp__a__work", "mcp__a__other"]})),
    );
    plexus.wait_for_stderr("warning: ");
    assert!(refusal(&mut plexus, "a__work", "3").is_some());
    assert_eq!(home.start(&["trust", "--yes"]).end().code, Some(0));
    assert_eq!(refusal(&mut plexus, "a__work", "4"), None);
    let revoked = home.start(&["trust", "--revoke", "."]).end();
    assert!(
        revoked.stdout.concat().contains("no longer approved"),
        "{revoked:?}"
    );
    assert!(refusal(&mut plexus, "a__work", "5").is_some());
    assert_eq!(plexus.end().code, Some(0));
}

/// "Allow some tools, deny the rest" can be written: as a first-match list, and with a mode. By
/// default, a rule that denies wins.
#[test]
fn the_rest_can_be_denied() {
    let rules = "rules = [\n\
        { tool = \"echo_once\", pattern = \"no\", action = \"deny\" },\n\
        { tool = \"echo_once\", action = \"allow\" },\n\
        { tool = \"*\", action = \"deny\" },\n]\n";
    let first_match = format!("[policy]\norder = \"first-match\"\n{rules}");
    let mode = "[policy]\nmode = \"dont-ask\"\nrules = [\n\
        { tool = \"echo_once\", pattern = \"no\", action = \"deny\" },\n\
        { tool = \"echo_once\", action = \"allow\" },\n]\n";
    for policy in [&*first_match, mode] {
        let home = Home::with(&[(MY_TOML, policy)]);
        assert_eq!(
            home.succeeds(&["call", "echo_once", "message=yes"]),
            ["yes"]
        );
        for call in [&["echo_once", "message=no"][..], &["echo_ping"]] {
            let said = home.fails(&[&["call"], call].concat());
            assert!(said.contains("denied by"), "{said}");
        }
    }
    let home = Home::with(&[(MY_TOML, &format!("[policy]\n{rules}"))]);
    let said = home.fails(&["call", "echo_once", "message=yes"]);
    assert!(said.contains("denied by the rule { tool = \"*\""), "{said}");
    // A rule that denies in another file wins over a first-match list.
    let home = Home::with(&[
        (MY_TOML, &*first_match),
        (
            MINE,
            &settings(&json!([{"tool": "echo_*", "action": "deny"}])),
        ),
    ]);
    let said = home.fails(&["call", "echo_once", "message=yes"]);
    assert!(said.contains("settings.json"), "{said}");
}

/// C26: a typed call asks only where a rule says so, also if the rule is one of Claude Code's lists.
#[test]
fn a_typed_call_is_its_own_consent() {
    let bare = Home::with(&[]);
    assert_eq!(bare.succeeds(&["call", "echo_once", "message=x"]), ["x"]);
    let home = Home::with(&[(MINE, &settings(&json!({"ask": ["*"]})))]);
    let asked = home.run(&["call", "echo_once", "message=x"]);
    assert_eq!((asked.code, asked.stdout.len()), (Some(3), 0), "{asked:?}");
    let said = asked.stderr.join("\n");
    assert!(said.contains("--yes") && said.contains(MINE), "{said}");
    let said = home.succeeds(&["call", "--yes", "echo_once", "message=x"]);
    assert_eq!(said, ["x"]);
}
