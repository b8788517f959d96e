//! Two callers on one gateway: neither can reach calls, questions, subscriptions or sessions of the
//! other, in every combination of client and server revision.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plexus_mcp_access::{Options, TokenFile};
use plexus_mcp_client::{Definition, HttpTarget, Target};
use plexus_mcp_core::{Context, Implementation, LocalService, NoArguments, Service, Tool};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{HttpServer, Offer, Received, built, tool};
use plexus_testkit::{Client, HttpClient, ListeningServer};
use serde_json::{Value, json};

use crate::world::World;

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];
const ELICITATION_TOOL: &str = "up__test_input_required_result_elicitation";

/// A gateway to the server at `url`, which requires tokens.
async fn gateway(url: &str) -> World {
    let target = Target::Http(HttpTarget::new(url.parse().unwrap()));
    let definition = Definition::new(target);
    let kind = MemberKind::Upstream(Box::new(definition));
    let hub = Hub::new(Implementation::new("gateway", "1.0.0"));
    hub.set_members(vec![MemberSpec::new("up", kind, [1; 32])])
        .await;
    hub.connect_in_background();
    if let Some(settling) = hub.settling() {
        settling.await;
    }
    World::with(Arc::new(hub) as Arc<dyn Service>, |_| {}).await
}

/// A gateway to the fixture server, which speaks `revision`.
async fn gateway_to(revision: Revision) -> (World, ListeningServer) {
    let arguments = ["--http", "127.0.0.1:0", "--revision", revision.as_str()];
    let server = ListeningServer::start(built("conformance-server"), &arguments).await;
    (gateway(server.url()).await, server)
}

async fn client(world: &World, who: &str, revision: Revision) -> Client {
    let http = HttpClient::new(&world.url, revision);
    let token = world.token(who);
    let http = http.with_header("authorization", &format!("Bearer {token}"));
    let mut client = Client::over(http, revision, json!({"elicitation": {}}));
    client.open().await;
    client
}

/// TRAP-20, MRTR26-07, SEC-04: a request state is refused from any other caller.
#[tokio::test]
async fn a_parked_call_is_its_callers_only() {
    for upstream in ERAS {
        let (world, _server) = gateway_to(upstream).await;
        let mut alice = client(&world, "alice", Revision::V2026_07_28).await;
        let mut bob = client(&world, "bob", Revision::V2026_07_28).await;
        let mut params = json!({"name": ELICITATION_TOOL, "arguments": {}});
        let asked = alice.result("tools/call", params.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let asks = asked["inputRequests"].as_object().unwrap();
        let answer = json!({"action": "accept", "content": {"name": "Alice"}});
        let answers = asks.keys().map(|key| (key.clone(), answer.clone()));
        params["inputResponses"] = Value::Object(answers.collect());
        params["requestState"] = asked["requestState"].clone();
        let refused = bob.error("tools/call", params.clone()).await;
        assert_eq!(refused["message"], "requestState is invalid or expired");
        let done = alice.result("tools/call", params).await;
        let text = done["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Alice"), "{done}");
    }
}

/// SEC-03: a question to one caller cannot be answered by another, nor its stream be resumed.
#[tokio::test]
async fn a_question_is_its_callers_only() {
    for upstream in ERAS {
        let (world, _server) = gateway_to(upstream).await;
        let alice = world.client_with(&world.token("alice"));
        let bob = world.client_with(&world.token("bob"));
        let params = json!({"protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a", "version": "1"}});
        let initialize =
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let opened = alice.post(&initialize).send().await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let _greeting = opened.message().await;
        let alice = alice.with_header("mcp-session-id", &id);
        let bob = bob.with_header("mcp-session-id", &id);

        let params = json!({"name": ELICITATION_TOOL, "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut stream = alice.post(&call).send().await;
        let mut last_event = None;
        let question = loop {
            let event = stream.event().await.unwrap();
            last_event = event.id.or(last_event);
            if let Some(message) = event.message
                && message["method"] == "elicitation/create"
            {
                break message;
            }
        };
        let answer = |name: &str| {
            let content = json!({"action": "accept", "content": {"name": name}});
            json!({"jsonrpc": "2.0", "id": question["id"], "result": content})
        };
        assert_eq!(bob.post(&answer("Bob")).send().await.status(), 404);
        let resume = bob.get().header("last-event-id", last_event.unwrap());
        assert_eq!(resume.send().await.status(), 404);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}});
        assert_eq!(bob.post(&cancel).send().await.status(), 404);
        assert_eq!(bob.delete().send().await.status(), 404);

        assert_eq!(alice.post(&answer("Alice")).send().await.status(), 202);
        let done = stream.next_message().await.unwrap();
        let text = done["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Alice"), "{done}");
    }
}

/// Only the subscriber gets updates, and only the subscriber can unsubscribe.
#[tokio::test]
async fn a_subscription_is_its_callers_only() {
    for upstream in ERAS {
        let (world, _server) = gateway_to(upstream).await;
        for revision in ERAS {
            let mut alice = client(&world, "alice", revision).await;
            let mut bob = client(&world, "bob", revision).await;
            let uri = watched_resource(&mut alice).await;
            if alice.is_stateless() {
                let filter = json!({"resourceSubscriptions": [uri]});
                let listen = json!({"notifications": filter});
                alice.begin("subscriptions/listen", listen).await;
                alice
                    .expect_method("notifications/subscriptions/acknowledged")
                    .await;
            } else {
                alice
                    .result("resources/subscribe", json!({"uri": uri}))
                    .await;
                bob.result("resources/unsubscribe", json!({"uri": uri}))
                    .await;
            }
            bob.call("up__test_touch_watched_resource", json!({})).await;
            let update = alice.expect_method("notifications/resources/updated").await;
            assert_eq!(update["params"]["uri"], *uri, "{upstream} {revision}");
            let messages = bob.close().await;
            let update = messages
                .iter()
                .find(|message| message["method"] == "notifications/resources/updated");
            assert_eq!(update, None, "{upstream} {revision}");
        }
    }
}

async fn watched_resource(client: &mut Client) -> String {
    let listed = client.result("resources/list", json!({})).await;
    let uris = listed["resources"].as_array().unwrap().iter();
    let mut uris = uris.map(|resource| resource["uri"].as_str().unwrap());
    let uri = uris.find(|uri| uri.ends_with("watched-resource"));
    uri.unwrap().to_owned()
}

/// A service sees the caller's token and its audience, if an external issuer issued it; static
/// tokens are not passed on.
#[tokio::test]
async fn a_service_may_act_for_its_caller() {
    let audience = async |_: NoArguments, context: Context| {
        let shown = context.peer().credentials.latest();
        shown.map_or_else(|| "none".to_owned(), |shown| shown.audience().to_owned())
    };
    let service = LocalService::builder("acting", "1.0.0").tool(Tool::new("audience"), audience);
    let home = tempfile::tempdir().unwrap();
    let tokens = TokenFile::at(home.path().join("tokens.json"));
    let made = tokens.add("ci", &["mcp".to_owned()]).unwrap();
    let with_tokens = |options: &mut Options| options.tokens = Some(tokens);
    let world = World::with(Arc::new(service.build().unwrap()), with_tokens).await;
    for revision in ERAS {
        let issued = world.token("alice");
        for (token, expected) in [(&*issued, &*world.url), (made.token.expose(), "none")] {
            let http = HttpClient::new(&world.url, revision);
            let http = http.with_header("authorization", &format!("Bearer {token}"));
            let mut client = Client::over(http, revision, json!({}));
            client.open().await;
            let called = client.call("audience", json!({})).await;
            assert_eq!(called["content"][0]["text"], expected, "{revision}");
        }
    }
}

/// A server with sessions has one for each caller, and never sees their tokens (AUTH06-09, ELIC-14).
#[tokio::test]
async fn sessions_upstream_are_not_shared() {
    let sessions = AtomicU32::new(0);
    let server = HttpServer::start(move |request: &Received| {
        let mut offer = Offer::new(Revision::V2025_11_25).declaring("tools", json!({}));
        offer.tools.push(tool("work"));
        match request.mcp() {
            "initialize" => {
                let number = sessions.fetch_add(1, Ordering::Relaxed);
                let reply = request.reply_from(&offer);
                reply.with_header("mcp-session-id", &format!("session-{number}"))
            }
            "tools/call" => {
                let text = json!({"content": [{"type": "text", "text": "done"}]});
                plexus_testkit::server::Reply::json(&request.result(&text))
            }
            _ => request.reply_from(&offer),
        }
    })
    .await;
    let world = gateway(&server.url()).await;
    for revision in ERAS {
        let mut seen = Vec::new();
        for who in ["alice", "bob", "alice"] {
            let mut client = client(&world, who, revision).await;
            client.call("up__work", json!({})).await;
            let call = server.received("tools/call").await;
            seen.push(call.header("mcp-session-id").unwrap().to_owned());
        }
        assert_eq!(seen[0], seen[2], "{revision}");
        assert_ne!(seen[0], seen[1], "{revision}");
    }
    let all = server.all();
    assert!(!all.is_empty());
    for request in all {
        assert_eq!(request.header("authorization"), None, "{request:?}");
        assert!(!request.body.to_string().contains("eyJ"), "{request:?}");
    }
}
