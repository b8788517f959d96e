//! Chats in the foreground.

use std::fs;

use plexus_mcp_core::{Section, Service};
use plexus_testkit::ForeignProcess;
use serde_json::{Value, json};

use crate::support::{Server, failure, texts};

/// S003-17: the parameters of `chat`.
#[test]
fn the_schema_is_that_of_the_founding_document() {
    let server = Server::new();
    let catalogue = server.service.catalogue();
    let catalogue = catalogue.borrow();
    let tool = catalogue
        .list(Section::Tools)
        .get("claudecode.chat")
        .unwrap();
    let tool: Value = tool.definition.decode().unwrap();
    let schema = &tool["inputSchema"];
    assert_eq!(schema["required"], json!(["session_name", "query"]));
    let property = |name: &str| schema["properties"][name].clone();
    assert_eq!(property("session_name")["type"], "string");
    assert_eq!(
        property("session_name")["description"],
        "Name of the session"
    );
    assert_eq!(property("query")["description"], "The query to send");
    assert_eq!(property("max_turns")["type"], json!(["integer", "null"]));
    assert_eq!(
        property("max_turns")["description"],
        "Maximum conversation turns"
    );
    assert_eq!(tool["annotations"]["openWorldHint"], true);
    assert_eq!(tool["annotations"]["destructiveHint"], true);
}

/// S003-46, S003-49: the text of the agent is streamed, and is in the result exactly once.
#[tokio::test]
async fn agent_text_is_streamed_and_is_in_the_result_once() {
    let server = Server::new();
    server.session().await;
    let asked = json!({ "session_name": "s", "query": "hello" });
    let mut calling = server.begin("claudecode.chat", &asked);
    assert_eq!(calling.piece().await, "Hel");
    assert_eq!(calling.piece().await, "lo");
    let result = calling.ended().await.unwrap();
    assert_eq!(texts(&result), ["Hello"]);
    let complete = &result["structuredContent"];
    assert_eq!(complete["session_name"], "s");
    assert_eq!(complete["turns"], 2);
    assert_eq!(complete["cost_usd"], 0.25);
    assert_eq!(complete["skipped_lines"], 0);
}

/// An agent that sends whole messages, without partial ones, is supported as well.
#[tokio::test]
async fn messages_without_partial_events_are_relayed_whole() {
    let server = Server::new();
    server.session().await;
    assert_eq!(texts(&server.chat("whole").await), ["All at once"]);
}

/// C16, S003-42, S003-46: the text comes first, then a line for each tool call.
#[tokio::test]
async fn tool_calls_are_listed_after_the_text() {
    let server = Server::new();
    server.session().await;
    let asked = json!({ "session_name": "s", "query": "tools" });
    let mut calling = server.begin("claudecode.chat", &asked);
    assert_eq!(calling.piece().await, "Let me look. ");
    assert_eq!(calling.tool().await, "Bash");
    let result = calling.ended().await.unwrap();
    let expected = [
        "Let me look. There is a.txt.",
        "[Tool: Bash] {\"command\":\"ls\"}",
    ];
    assert_eq!(texts(&result), expected);
}

/// C16, S003-22: without text, the text block is the structured result as JSON.
#[tokio::test]
async fn without_text_the_result_is_the_summary() {
    let server = Server::new();
    server.session().await;
    let result = server.chat("silent").await;
    let text: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(text, result["structuredContent"]);
}

/// Lines that cannot be decoded are skipped and counted; unknown messages are not counted.
#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let server = Server::new();
    server.session().await;
    let result = server.chat("junk").await;
    assert_eq!(texts(&result), ["fine"]);
    assert_eq!(result["structuredContent"]["skipped_lines"], 4);
}

/// C17, S003-22, S001-D10: a failed chat returns the agent's last message; exceeding the maximum
/// number of turns is a failure, too.
#[tokio::test]
async fn an_agent_that_fails_says_why() {
    let server = Server::new();
    server.session().await;
    let result = server.chat("fail").await;
    let said = failure(&result);
    assert!(
        said.contains("exited with code 3 without a result"),
        "{said}"
    );
    assert!(said.ends_with("first line\nInvalid API key"), "{said}");

    let result = server.chat("refused").await;
    assert!(failure(&result).contains("maximum number of turns"));
}

#[tokio::test]
async fn an_agent_that_is_missing_is_named() {
    let server = Server::with_agent("no-such-agent");
    server.session().await;
    let result = server.chat("hello").await;
    let said = failure(&result);
    for part in ["no-such-agent", "/nowhere:/elsewhere", "PLEXUS_CLAUDE"] {
        assert!(said.contains(part), "{said}");
    }
}

/// S003-20: the error has the text of the Substrate document.
#[tokio::test]
async fn a_session_that_is_missing_is_named() {
    let server = Server::new();
    let asked = json!({ "session_name": "my-session", "query": "hello" });
    let result = server.call("claudecode.chat", asked).await;
    assert_eq!(failure(&result), "Session 'my-session' not found");
}

/// C13, S001-D10: the parameter names of Substrate are accepted, and all arguments, including the
/// number of turns, reach the agent.
#[tokio::test]
async fn arguments_reach_the_agent() {
    let server = Server::new();
    let new = json!({
        "name": "s", "working_dir": server.work(), "model": "haiku", "system_prompt": "Be brief",
        "loopback_enabled": false,
    });
    server.call("claudecode.create", new).await;
    let asked = json!({
        "name": "s", "prompt": "-x --danger", "max_turns": 3,
        "allowed_tools": ["Read", "Bash(git log:*)"],
    });
    let result = server.call("claudecode_chat", asked).await;
    assert_eq!(texts(&result), ["what is -x --danger?"]);
    let expected = [
        "--print",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--verbose",
        "--model=haiku",
        "--system-prompt=Be brief",
        "--max-turns=3",
        "--allowedTools=Read",
        "--allowedTools=Bash(git log:*)",
    ];
    assert_eq!(server.arguments(), expected);
}

/// S003-27, S003-07: cancelling the call ends the agent, with all its child processes.
#[tokio::test]
async fn cancelling_ends_the_agent() {
    let server = Server::new();
    server.session().await;
    let asked = json!({ "session_name": "s", "query": "hang" });
    let mut calling = server.begin("claudecode.chat", &asked);
    let ids = calling.piece().await;
    drop(calling);
    for id in ids.split(' ') {
        ForeignProcess::of(id).ended().await;
    }
    // The session is free again, if not in the same moment.
    let deleting = async {
        loop {
            let deleted = server
                .call("claudecode.delete", json!({ "name": "s" }))
                .await;
            if deleted["isError"] != true {
                break;
            }
        }
    };
    let timeout = crate::support::TEST_TIMEOUT;
    tokio::time::timeout(timeout, deleting).await.unwrap();
}

/// A session has one chat at a time, across all processes.
#[tokio::test]
async fn a_session_has_one_chat_at_a_time() {
    let server = Server::new();
    server.session().await;
    let asked = json!({ "session_name": "s", "query": "wait" });
    let mut calling = server.begin("claudecode.chat", &asked);
    calling.piece().await;
    for other in [&server, &server.again()] {
        let refused = other.chat("hello").await;
        assert!(failure(&refused).contains("is busy"), "{refused}");
        let refused = other
            .call("claudecode.delete", json!({ "name": "s" }))
            .await;
        assert!(failure(&refused).contains("is busy"), "{refused}");
    }
    fs::write(server.work().join("go"), "").unwrap();
    assert_eq!(texts(&calling.ended().await.unwrap()), ["waiting"]);
    assert_eq!(texts(&server.chat("hello").await), ["Hello"]);
}
