//! Permission requests of agents.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Server, raw, texts};

/// The user of the calling client is asked.
#[tokio::test]
async fn the_callers_user_is_asked() {
    let server = Server::new();
    let session = server.session().await;
    for (said, behavior) in [
        (
            r#"{"action":"accept","content":{"answer":"allow"}}"#,
            "behavior:allow",
        ),
        (r#"{"action":"decline"}"#, "behavior:deny"),
    ] {
        let asked = json!({ "session_name": "s", "query": "permit" });
        let mut calling =
            server.begin_as("claudecode.chat", &asked, r#"{"elicitation":{"form":{}}}"#);
        let ask = calling.question().await;
        let params: Value = ask.question.params().unwrap().decode().unwrap();
        let message = params["message"].as_str().unwrap();
        assert!(
            message.contains(session["id"].as_str().unwrap()),
            "{message}"
        );
        ask.answer(Ok(raw(said)));
        let result = calling.ended().await.unwrap();
        assert_eq!(texts(&result), [behavior]);
    }
    let arguments = server.arguments();
    assert!(
        arguments.contains(&"--permission-prompt-tool=mcp__plexus__loopback_permit".to_owned())
    );
    // Other users of the machine must not read where to ask.
    assert_eq!(
        fs::read_to_string(server.work().join("mode")).unwrap(),
        "600\n"
    );
}

/// If the client cannot ask its user, the streamed text says how to answer; another client does.
#[tokio::test]
async fn another_client_answers() {
    let server = Server::new();
    let session = server.session().await;
    let asked = json!({ "session_name": "s", "query": "permit" });
    let mut calling = server.begin("claudecode.chat", &asked);
    let said = calling.piece().await;
    assert!(
        said.contains("Waiting for permission to use Bash"),
        "{said}"
    );
    let filter = json!({ "session_id": session["id"] });
    let pending = server.again().call("loopback.pending", filter).await;
    let id = &pending["structuredContent"]["pending"][0]["approval_id"];
    assert!(said.contains(id.as_str().unwrap()), "{said}");
    let response = json!({ "approval_id": id, "approve": false });
    server.again().call("loopback.respond", response).await;
    assert_eq!(texts(&calling.ended().await.unwrap()), ["behavior:deny"]);
}

/// A permission request ends with its chat.
#[tokio::test]
async fn a_chat_that_is_over_withdraws_its_requests() {
    let server = Server::new();
    server.session().await;
    let asked = json!({ "session_name": "s", "query": "permit" });
    let mut calling = server.begin("claudecode.chat", &asked);
    calling.piece().await;
    drop(calling);
    let withdrawn = async {
        loop {
            let pending = server.call("loopback.pending", json!({})).await;
            if pending["structuredContent"]["pending"] == json!([]) {
                break;
            }
        }
    };
    tokio::time::timeout(crate::support::TEST_TIMEOUT, withdrawn)
        .await
        .unwrap();
}
