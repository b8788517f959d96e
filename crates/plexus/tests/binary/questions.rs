//! Questions of servers during a call, shown at a terminal; and Ctrl-C.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::json;

use crate::servers::{fixture, home};
use crate::terminal::TerminalSession;

/// ELIC-07, S004 and issue "the commands": a form is asked field by field, in both eras.
#[test]
fn forms_are_filled_in_field_by_field() {
    for era in ["legacy", "modern"] {
        let home = home(&json!({"s": fixture(era)}));
        let mut call = TerminalSession::start(
            &home,
            100,
            &["call", "s__test_elicitation_sep1034_defaults"],
        );
        call.shows("Ctrl-D declines");
        // Every field has a default. One is changed; one has an invalid value first.
        call.shows("[John Doe]> ");
        call.types("Ada\n");
        call.shows("[30]> ");
        call.types("thirty\n");
        call.shows("a whole number is expected");
        call.shows("[30]> ");
        call.types("31\n");
        call.shows("[95.5]> ");
        call.types("\n");
        call.shows("[active]> ");
        call.types("2\n");
        call.shows("[y]> ");
        call.types("n\n");
        let (code, shown) = call.end();
        assert_eq!(code, Some(0), "{shown}");
        for part in [
            r#""name":"Ada""#,
            r#""age":31"#,
            r#""score":95.5"#,
            r#""status":"inactive""#,
            r#""verified":false"#,
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}

#[test]
fn end_of_input_declines_a_question() {
    let home = home(&json!({"s": fixture("modern")}));
    let mut call =
        TerminalSession::start(&home, 100, &["call", "s__test_elicitation", "message=Who?"]);
    call.shows("Who?");
    call.shows("> ");
    call.types("\u{4}");
    let (_, shown) = call.end();
    assert!(shown.contains("action=decline"), "{shown}");

    let mut call = TerminalSession::start(&home, 100, &["call", "s__test_url_elicitation"]);
    call.shows("visit example.com:");
    call.shows("https://example.com/");
    call.shows("[y/N] ");
    call.types("y\n");
    let (_, shown) = call.end();
    assert!(shown.contains("action=accept"), "{shown}");
}

/// C26: a policy of "ask" asks the user.
#[test]
fn a_rule_that_asks_is_answered() {
    let home = home(&json!({"s": fixture("modern")}));
    let rule = "[policy]\nrules = [{ tool = \"s__*\", action = \"ask\" }]\n";
    std::fs::write(home.path("project/plexus.toml"), rule).unwrap();
    for (answer, code) in [("once\n", Some(0)), ("3\n", Some(1))] {
        let mut call = TerminalSession::start(&home, 100, &["call", "s__test_simple_text"]);
        call.shows("May \"s__test_simple_text\" of the server \"s\" be called?");
        call.shows("one of them> ");
        call.types(answer);
        assert_eq!(call.end().0, code, "{answer}");
    }
}

#[test]
fn progress_and_pieces_are_shown_while_they_come() {
    let home = home(&json!({"s": fixture("modern")}));
    let mut call = TerminalSession::start(&home, 100, &["call", "s__test_streaming"]);
    call.shows("Hello world");
    let (code, rest) = call.end();
    assert_eq!(code, Some(0));
    assert!(!rest.contains("Hello"), "{rest}");

    let mut call = TerminalSession::start(&home, 60, &["call", "s__test_slow", "ms=1500"]);
    call.shows("calling s__test_slow (");
    let (code, shown) = call.end();
    assert_eq!(code, Some(0), "{shown}");
    // The spinner line is removed before the result is printed.
    assert!(shown.contains("\r\u{1b}[K"), "{shown:?}");
}

/// Ctrl-C sends a cancellation to the server that executes the call.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_call_is_cancelled_at_its_server() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let offer = Offer::tools(revision, [tool("wait")]);
        let server = StdioServer::new(
            Script::from(&offer).on("tools/call", [Step::Complain("called".to_owned())]),
        )
        .await;
        let definition = json!({"command": StdioServer::command(), "args": server.arguments()});
        let home = home(&json!({"s": definition}));
        let call = TerminalSession::start(&home, 100, &["call", "s__wait"]);
        let process = server.process().await;
        let request = process.received("tools/call").await;
        call.interrupt();
        let cancelled = process.received("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        process.ended().await;
        assert_eq!(call.end().0, Some(130));
    }
}

#[test]
fn narrow_terminals_cut_lines_and_colours_can_be_refused() {
    let home = home(&json!({}));
    let (_, shown) = TerminalSession::start(&home, 30, &["tools"]).end();
    assert!(shown.contains("\u{1b}[1mecho_once"), "{shown:?}");
    for line in shown.lines() {
        let plain = line.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert!(plain.trim_end().chars().count() <= 30, "{line:?}");
    }
}
