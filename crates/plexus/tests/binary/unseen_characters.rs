//! Text of files and servers does not reach a terminal with escape sequences or hidden characters.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::json;

use crate::gateway::{definition, file};
use crate::home::Home;
use crate::terminal::TerminalSession;

/// Sets the title of the window, clears the screen in two spellings, changes the direction of text,
/// and is invisible.
const HOSTILE: &str = "x\u{1b}]0;evil\u{7}\u{1b}[2J\u{9b}2J\u{202e}y\u{200b}z";

/// The output without the styles and line clearing of Plexus itself.
fn without_styles(mut shown: &str) -> String {
    let mut rest = String::new();
    while let Some((before, after)) = shown.split_once("\u{1b}[") {
        rest.push_str(before);
        let code = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let own = code.strip_prefix('m').filter(|_| code.len() < after.len());
        let own = own.or_else(|| after.strip_prefix('K'));
        shown = own.unwrap_or_else(|| {
            rest.push('\u{1b}');
            after
        });
    }
    rest + shown
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_prints_what_a_file_or_a_server_hides() {
    let mut hostile = tool("work");
    hostile["title"] = json!(HOSTILE);
    hostile["description"] = json!(HOSTILE);
    hostile["inputSchema"] =
        json!({"type": "object", "properties": {"a": {"type": "string", "description": HOSTILE}}});
    let offer = Offer::tools(Revision::V2025_06_18, [hostile]);
    let content = json!({"content": [{"type": "text", "text": HOSTILE}]});
    let script = Script::from(&offer)
        .start([Step::Complain(HOSTILE.to_owned())])
        .on("tools/call", [Step::Result(content)]);
    let server = StdioServer::new(script).await;
    let bad = json!({"command": "sh", "args": ["-c", "printf '%s\\n' \"$0\" >&2; exit 3", HOSTILE], "env": {"A": HOSTILE}});
    let projects = file(&[(&format!("p{HOSTILE}"), bad.clone())]);
    let home = Home::with(&[
        (
            ".mcp.json",
            &file(&[
                ("s", definition(&server)),
                (HOSTILE, bad),
                (
                    &format!("w{HOSTILE}"),
                    json!({"command": 7, (HOSTILE): HOSTILE}),
                ),
            ]),
        ),
        ("project/.mcp.json", &projects),
    ]);
    for (arguments, is_shown) in [
        (&["mcp", "list"][..], true),
        (&["mcp", "list", "--json"], true),
        (&["mcp", "get", HOSTILE], true),
        (&["tools", "-v"], true),
        (&["tools", "--json"], true),
        (&["call", "s__work"], true),
        (&["call", "s__work", "--json"], true),
        (&["call", "no\u{1b}such\u{202e}tool"], true),
        (&["explain", "s__work"], true),
        (&["status"], true),
        (&["status", "--json"], true),
        (&["doctor"], true),
        (&["trust", "--json"], true),
        (&["import", "--dry-run"], false),
    ] {
        let (_, shown) = TerminalSession::start(&home, 200, arguments).end();
        let shown = without_styles(&shown);
        for hidden in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}'] {
            assert!(
                !shown.contains(hidden),
                "{arguments:?}: {hidden:?} in {shown:?}"
            );
        }
        let made_visible = shown.contains("\\u202e");
        assert!(made_visible || !is_shown, "{arguments:?}: {shown:?}");
    }
    let mut asked = TerminalSession::start(&home, 200, &["trust"]);
    asked.shows("\\u001b]0;evil\\u0007");
    asked.shows("[y/N]");
    asked.types("n\n");
    let (code, _) = asked.end();
    assert_eq!(code, Some(1));
}

/// Data in a pipe is left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn results_in_a_pipe_are_unchanged() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let content = json!({"content": [{"type": "text", "text": HOSTILE}]});
    let script = Script::from(&offer).on("tools/call", [Step::Result(content)]);
    let server = StdioServer::new(script).await;
    let home = Home::with(&[(".mcp.json", &file(&[("s", definition(&server))]))]);
    let called = home.start(&["call", "s__work"]).end();
    assert_eq!(called.stdout, [HOSTILE], "{called:?}");
}
