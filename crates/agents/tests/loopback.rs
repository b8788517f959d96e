//! Tests of the service `loopback`: permission requests of agents, and their answers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_agents::AgentData;
use plexus_mcp_agents::loopback::{Decision, Permissions, Request, loopback};
use plexus_mcp_builtins::{DataPaths, Names};
use plexus_mcp_core::{
    Ask, Call, Event, EventReceiver, EventSender, LocalService, Outcome, Peer, Principal, Raw,
    Service,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use plexus_testkit::within;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Test timeout, longer than any operation here takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

const ASKABLE: &str = r#"{"elicitation":{"form":{}}}"#;

struct Calling {
    answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    events: EventReceiver,
}

impl Calling {
    /// The text and the structured content of the result.
    async fn ended(self) -> (Value, Value) {
        let answer = tokio::time::timeout(TEST_TIMEOUT, self.answer).await;
        let result: Value = answer.unwrap().unwrap().decode().unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        let text = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        (text, result["structuredContent"].clone())
    }

    /// The elicitation request that the call sends to its client.
    async fn question(&mut self) -> (Value, Ask) {
        let asking = async {
            tokio::select! {
                Some(Event::Ask(ask)) = self.events.recv() => {
                    let params = ask.question.params().unwrap().decode().unwrap();
                    (params, ask)
                }
                outcome = &mut self.answer => panic!("{outcome:?}"),
            }
        };
        within("a question", asking).await
    }
}

struct Server {
    folder: TempDir,
    permissions: Permissions,
    service: LocalService,
}

impl Server {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let permissions = permissions(&folder);
        let builder = LocalService::builder("test", "1.0.0");
        let service = loopback(builder, Names::Dotted, &permissions);
        Self {
            folder,
            permissions,
            service: service.build().unwrap(),
        }
    }

    fn begin(&self, tool: &str, arguments: &Value, capabilities: &str) -> Calling {
        let peer = Peer::new(
            Revision::V2025_11_25,
            ClientCapabilities::from_raw(&raw(capabilities)).unwrap(),
            None,
            Principal::anonymous(),
        );
        let (sender, events) = EventSender::channel(Arc::new(peer), false, None);
        let params = json!({ "name": format!("loopback.{tool}"), "arguments": arguments });
        let params = raw(&params.to_string());
        let call = Call::new(
            "tools/call",
            Object::parse(&params).unwrap(),
            sender,
            CancellationToken::new(),
        );
        Calling {
            answer: self.service.call(call),
            events,
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> (Value, Value) {
        self.begin(tool, &arguments, "{}").ended().await
    }

    /// Waits for the one pending request, and returns its id.
    async fn asked(&self) -> String {
        let (_, waited) = self.call("wait", json!({})).await;
        waited["pending"][0]["approval_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn permissions(folder: &TempDir) -> Permissions {
    let data = AgentData::open(&DataPaths::in_directory(folder.path())).unwrap();
    data.permissions
}

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}

fn request() -> Value {
    json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "input": { "command": "ls", "n": 1.0 } })
}

/// The format of Claude Code: the text is exactly this JSON, and nothing else.
#[tokio::test]
async fn another_client_allows() {
    let server = Server::new();
    let permit = server.begin("permit", &request(), "{}");
    let respond = async {
        let (_, waited) = server.call("wait", json!({})).await;
        let pending = &waited["pending"][0];
        assert_eq!(pending["tool_name"], "Bash");
        assert_eq!(pending["tool_use_id"], "toolu_1");
        assert_eq!(pending["input"], request()["input"]);
        assert_eq!(pending["session_id"], Value::Null);
        let (_, listed) = server.call("pending", json!({})).await;
        assert_eq!(listed["pending"], waited["pending"]);
        let id = &pending["approval_id"];
        server
            .call("respond", json!({ "approval_id": id, "approve": true }))
            .await
    };
    let (answer, responded) = tokio::join!(permit.answer, respond);
    let answer: Value = answer.unwrap().decode().unwrap();
    let expected = r#"{"behavior":"allow","updatedInput":{"command":"ls","n":1.0}}"#;
    assert_eq!(
        answer["content"],
        json!([{ "type": "text", "text": expected }])
    );
    assert_eq!(answer["structuredContent"], Value::Null);
    assert_eq!(responded.1["approved"], true);
    let (_, listed) = server.call("pending", json!({})).await;
    assert_eq!(listed["pending"], json!([]));
}

#[tokio::test]
async fn another_client_denies_or_changes_the_input() {
    let server = Server::new();
    let cases = [
        (
            json!({ "approve": false, "message": "not here" }),
            json!({ "behavior": "deny", "message": "not here" }),
        ),
        (
            json!({ "approve": false }),
            json!({ "behavior": "deny", "message": "the user does not allow this" }),
        ),
        (
            json!({ "approve": true, "updated_input": { "command": "pwd" } }),
            json!({ "behavior": "allow", "updatedInput": { "command": "pwd" } }),
        ),
    ];
    for (mut response, expected) in cases {
        let permit = server.begin("permit", &request(), "{}");
        let respond = async {
            response["approval_id"] = server.asked().await.into();
            server.call("respond", response).await
        };
        let ((answer, _), _) = tokio::join!(permit.ended(), respond);
        assert_eq!(answer, expected);
    }
}

/// The user of the calling client is asked, if the client supports elicitation.
#[tokio::test]
async fn the_callers_own_user_is_asked() {
    let server = Server::new();
    let cases = [
        (
            r#"{"action":"accept","content":{"answer":"allow"}}"#,
            json!({ "behavior": "allow", "updatedInput": request()["input"] }),
        ),
        (
            r#"{"action":"accept","content":{"answer":"deny","message":"no"}}"#,
            json!({ "behavior": "deny", "message": "no" }),
        ),
        (
            r#"{"action":"decline"}"#,
            json!({ "behavior": "deny", "message": "the user does not allow this" }),
        ),
    ];
    for (said, expected) in cases {
        let mut permit = server.begin("permit", &request(), ASKABLE);
        let (params, ask) = permit.question().await;
        let message = params["message"].as_str().unwrap();
        assert!(message.contains(r#""Bash""#) && message.contains(r#""command":"ls""#));
        ask.answer(Ok(raw(said)));
        assert_eq!(permit.ended().await.0, expected, "{said}");
    }
}

/// An agent without a terminal cancels every question; other clients can still answer.
#[tokio::test]
async fn a_cancelled_question_can_be_answered_by_another_client() {
    let server = Server::new();
    let mut permit = server.begin("permit", &request(), ASKABLE);
    let (_, ask) = permit.question().await;
    ask.answer(Ok(raw(r#"{"action":"cancel"}"#)));
    let respond = async {
        let response = json!({ "approval_id": server.asked().await, "approve": true });
        server.call("respond", response).await
    };
    let ((answer, _), _) = tokio::join!(permit.ended(), respond);
    assert_eq!(answer["behavior"], "allow");
}

/// A client with a user waits for requests, and asks the user.
#[tokio::test]
async fn a_waiting_client_asks_its_user() {
    let server = Server::new();
    let permit = server.begin("permit", &request(), "{}");
    let mut wait = server.begin("wait", &json!({ "ask_user": true }), ASKABLE);
    let answered = async {
        let (_, ask) = wait.question().await;
        ask.answer(Ok(raw(
            r#"{"action":"accept","content":{"answer":"deny"}}"#,
        )));
        wait.ended().await.1
    };
    let ((answer, _), waited) = tokio::join!(permit.ended(), answered);
    assert_eq!(answer["behavior"], "deny");
    assert_eq!(waited["pending"], json!([]));
    assert_eq!(waited["answered"][0]["approved"], false);

    let unable = server.begin("wait", &json!({ "ask_user": true }), "{}");
    assert!(unable.answer.await.is_err());
}

/// Another process with the same store sees the request, and its answer counts.
#[tokio::test]
async fn another_process_may_answer() {
    let server = Server::new();
    let other = permissions(&server.folder);
    let permit = server.begin("permit", &request(), "{}");
    let respond = async {
        let pending = other.wait(None, TEST_TIMEOUT).await.unwrap();
        let allow = Decision::Allow {
            updated_input: None,
        };
        let id = pending[0].approval_id.clone();
        other.respond(id, allow).await.unwrap();
    };
    let ((answer, _), ()) = tokio::join!(permit.ended(), respond);
    assert_eq!(answer["behavior"], "allow");
}

#[tokio::test]
async fn a_permission_request_without_an_answer_is_denied() {
    let server = Server::new();
    let request = Request {
        session_id: Some("s".to_owned()),
        tool_name: "Bash".to_owned(),
        tool_use_id: None,
        input: raw("{}"),
    };
    let mut asked = None;
    let timeout = Duration::from_millis(50);
    let decided = server
        .permissions
        .permit(request, timeout, None, |pending| {
            asked = Some(pending.approval_id.clone());
        });
    let Decision::Deny { message } = decided.await.unwrap() else {
        panic!("it was not allowed");
    };
    assert!(message.starts_with("no answer"), "{message}");
    // It is too late now.
    let response = json!({ "approval_id": asked, "approve": true });
    let late = server.begin("respond", &response, "{}").answer.await;
    let late: Value = late.unwrap().decode().unwrap();
    assert_eq!(late["isError"], true, "{late}");
}

#[tokio::test]
async fn an_agent_that_goes_away_withdraws_its_request() {
    let server = Server::new();
    let mut permit = server.begin("permit", &request(), "{}");
    let id = tokio::select! {
        id = server.asked() => id,
        outcome = &mut permit.answer => panic!("{outcome:?}"),
    };
    drop(permit);
    let withdrawn = async {
        while !server.permissions.pending(None).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, withdrawn).await.unwrap();
    let response = json!({ "approval_id": id, "approve": true });
    let (said, _) = server.call("respond", response).await;
    assert_eq!(said, format!("the request {id} is no longer pending"));
    let (said, _) = server
        .call("respond", json!({ "approval_id": "x", "approve": true }))
        .await;
    assert!(said.as_str().unwrap().contains("list the pending requests"));
}

#[tokio::test]
async fn waiting_ends_without_a_request() {
    let server = Server::new();
    let (_, waited) = server.call("wait", json!({ "timeout_ms": 20 })).await;
    assert_eq!(waited, json!({ "pending": [], "answered": [] }));
}

/// Unknown arguments are accepted, for newer versions of Claude Code.
#[tokio::test]
async fn agents_may_say_more() {
    let server = Server::new();
    let mut asked = request();
    asked["suggestions"] = json!([]);
    let mut permit = server.begin("permit", &asked, ASKABLE);
    permit.question().await;
}
