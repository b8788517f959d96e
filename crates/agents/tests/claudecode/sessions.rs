//! Sessions, and how chats continue them.

use serde_json::{Value, json};

use crate::support::{Server, failure};

fn resumed(server: &Server) -> Option<String> {
    let arguments = server.arguments();
    let mut resume = arguments
        .iter()
        .filter_map(|argument| argument.strip_prefix("--resume="));
    resume.next().map(str::to_owned)
}

fn conversation(result: &Value) -> String {
    let id = &result["structuredContent"]["agent_session_id"];
    id.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn sessions_are_created_found_and_deleted() {
    let server = Server::new();
    let created = server.session().await;
    assert_eq!(created["name"], "s");
    assert_eq!(created["agent_session_id"], Value::Null);
    for name in [&created["name"], &created["id"]] {
        let got = server.call("claudecode.get", json!({ "name": name })).await;
        assert_eq!(got["structuredContent"], created);
    }
    let listed = server.again().call("claudecode.list", json!({})).await;
    assert_eq!(listed["structuredContent"]["sessions"], json!([created]));

    let again = json!({ "name": "s", "working_dir": server.work() });
    let refused = server.call("claudecode.create", again).await;
    assert!(failure(&refused).contains("choose another name"));
    let nowhere = json!({ "name": "t", "working_dir": server.work().join("missing") });
    let refused = server.call("claudecode.create", nowhere).await;
    assert!(failure(&refused).starts_with("there is no folder "));

    let deleted = server
        .call("claudecode.delete", json!({ "name": "s" }))
        .await;
    assert_eq!(deleted["structuredContent"], json!({ "deleted": "s" }));
    let missing = server.call("claudecode.get", json!({ "name": "s" })).await;
    assert_eq!(failure(&missing), "Session 's' not found");
}

/// Each chat continues the last one, also in another process.
#[tokio::test]
async fn chats_resume_the_conversation() {
    let server = Server::new();
    server.session().await;
    let first = conversation(&server.chat("hello").await);
    assert_eq!(resumed(&server), None);
    let other = server.again();
    assert_eq!(conversation(&other.chat("hello").await), first);
    assert_eq!(resumed(&server), Some(first.clone()));
    let got = server.call("claudecode.get", json!({ "name": "s" })).await;
    let session = &got["structuredContent"];
    assert_eq!(session["agent_session_id"], first);
    assert_eq!(session["chats"], 2);
}

/// A failed chat leaves the session unchanged.
#[tokio::test]
async fn a_broken_chat_is_not_resumed() {
    let server = Server::new();
    server.session().await;
    let first = conversation(&server.chat("hello").await);
    server.chat("fail").await;
    assert_eq!(conversation(&server.chat("hello").await), first);
}

/// C13: an ephemeral chat continues the conversation, and does not change the session.
#[tokio::test]
async fn an_ephemeral_chat_is_forgotten() {
    let server = Server::new();
    server.session().await;
    let first = conversation(&server.chat("hello").await);
    let asked = json!({ "session_name": "s", "query": "hello", "ephemeral": true });
    let aside = server.call("claudecode.chat", asked).await;
    assert_eq!(conversation(&aside), format!("{first}-fork"));
    assert_eq!(conversation(&server.chat("hello").await), first);
}

/// A fork continues the conversation of the session; later chats of the two are independent.
#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let server = Server::new();
    server.session().await;
    let first = conversation(&server.chat("hello").await);
    let forked = json!({ "name": "s", "new_name": "t" });
    let forked = server.call("claudecode.fork", forked).await;
    assert_eq!(forked["structuredContent"]["agent_session_id"], first);

    let in_fork = json!({ "session_name": "t", "query": "hello" });
    let own = conversation(&server.call("claudecode.chat", in_fork.clone()).await);
    assert_eq!(own, format!("{first}-fork"));
    // Only once.
    assert_eq!(
        conversation(&server.call("claudecode.chat", in_fork).await),
        own
    );
    assert_eq!(conversation(&server.chat("hello").await), first);

    let taken = json!({ "name": "s", "new_name": "t" });
    let taken = server.call("claudecode.fork", taken).await;
    assert!(failure(&taken).contains("choose another name"));
}
