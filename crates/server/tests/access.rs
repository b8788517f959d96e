//! A server whose [`Access`] authenticates callers, and the isolation of their sessions and calls.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use plexus_mcp_core::{Context, LocalService, NoArguments, Principal, Scopes, Tool};
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::CallerIdentity;
use plexus_mcp_server::http::{Access, AccessDenied, HttpOptions, HttpServer, SsePaths};
use plexus_mcp_server::{Edge, Options};
use plexus_testkit::{Client, HttpClient, HttpResponse};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Accepts any `Bearer NAME SCOPE…` as the principal `NAME`.
#[derive(Debug)]
struct ByName;

impl Access for ByName {
    fn admit<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, AccessDenied>> {
        let given = head.headers.get("authorization");
        let words = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let admitted = if let Some(words) = words {
            let (name, scopes) = words.split_once(' ').unwrap_or((words, ""));
            let scopes: Scopes = scopes.split_whitespace().collect();
            Ok(CallerIdentity::new(Principal::new(name), scopes))
        } else {
            let mut denied = AccessDenied::new(StatusCode::UNAUTHORIZED, "who are you?");
            let challenge = HeaderValue::from_static("Bearer");
            denied.headers.insert("www-authenticate", challenge);
            Err(denied)
        };
        std::future::ready(admitted).boxed()
    }

    fn is_still_valid<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, bool> {
        async { self.admit(head).await.is_ok() }.boxed()
    }

    fn document(&self, path: &str) -> Option<Bytes> {
        (path == METADATA).then(|| Bytes::from_static(b"{}"))
    }
}

/// A running server whose only tool returns its caller.
struct Server {
    url: String,
    _running: JoinSet<()>,
}

impl Server {
    async fn start(max_sessions: usize) -> Self {
        Self::with_quota(max_sessions, max_sessions).await
    }

    async fn with_quota(max_sessions: usize, per_principal: usize) -> Self {
        let who = async |_: NoArguments, context: Context| {
            let peer = context.peer();
            let scopes = peer.scopes.iter().flat_map(Scopes::iter);
            let scopes = scopes.collect::<Vec<_>>().join(" ");
            format!("{} [{scopes}]", peer.principal.as_str())
        };
        let service = LocalService::builder("who", "1.0.0").tool(Tool::new("who"), who);
        let edge = Edge::new(Arc::new(service.build().unwrap()), Options::default()).unwrap();
        let mut options = HttpOptions::default();
        options.sse = Some(SsePaths::default());
        options.max_sessions = max_sessions;
        options.max_sessions_per_principal = per_principal;
        let server = HttpServer::bind(edge, &["127.0.0.1:0".parse().unwrap()], options).await;
        let server = server.unwrap().admitting(Arc::new(ByName));
        let url = format!("http://{}{}", server.addresses()[0], server.path());
        let mut running = JoinSet::new();
        running.spawn(server.run());
        Self {
            url,
            _running: running,
        }
    }

    fn stranger(&self) -> HttpClient {
        HttpClient::new(&self.url, Revision::V2025_11_25)
    }

    fn client(&self, who: &str) -> HttpClient {
        self.stranger()
            .with_header("authorization", &format!("Bearer {who}"))
    }

    /// Opens a session, and gives its id.
    async fn session(&self, who: &str) -> String {
        let opened = self.client(who).post(&initialize()).send().await;
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    async fn has_session(&self, who: &str, id: &str) -> bool {
        let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
        let request = self.client(who).post(&ping);
        request.header("mcp-session-id", id).send().await.status() == 200
    }
}

fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// Everything of an answer but its date.
async fn whole(answer: HttpResponse) -> (u16, String, String) {
    let mut headers = answer.headers().clone();
    headers.remove("date");
    (answer.status(), format!("{headers:?}"), answer.text().await)
}

/// AUTH03-05, AUTH26-19, SEC-02: every request of either era and transport needs credentials. Without
/// them it gets 401 and a challenge.
#[tokio::test]
async fn every_request_needs_credentials() {
    let server = Server::start(8).await;
    let id = server.session("kim").await;
    let stranger = server.stranger();
    let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
    let requests = [
        stranger.post(&initialize()),
        stranger.post_bytes("no JSON"),
        stranger.post(&ping).header("mcp-session-id", &id),
        stranger
            .post(&ping)
            .header("mcp-protocol-version", "2026-07-28"),
        stranger.get().header("mcp-session-id", &id),
        stranger.get(),
        stranger.delete().header("mcp-session-id", &id),
        stranger.request(Method::HEAD, Bytes::new()),
        stranger.clone().at("/sse").get(),
        stranger
            .clone()
            .at(&format!("/messages?session={id}"))
            .post(&ping),
    ];
    for request in requests {
        let shown = format!("{request:?}");
        let answer = request.send().await;
        assert_eq!(answer.status(), 401, "{shown}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{shown}");
    }
    assert!(server.has_session("kim", &id).await);
}

/// `/health`, the metadata and preflights need no authentication. A request from a foreign origin is
/// refused before it is authenticated.
#[tokio::test]
async fn the_way_in_is_public() {
    let server = Server::start(8).await;
    let stranger = server.stranger();
    let status = async |path: &str| stranger.clone().at(path).get().send().await.status();
    assert_eq!(status("/health").await, 200);
    assert_eq!(status(METADATA).await, 200);
    assert_eq!(status("/elsewhere").await, 404);

    let origin = "http://localhost:6274";
    let preflight = stranger.request(Method::OPTIONS, Bytes::new());
    let preflight = preflight.header("origin", origin).send().await;
    assert_eq!(preflight.status(), 204);
    let refused = stranger.post(&initialize()).header("origin", origin);
    let refused = refused.send().await;
    assert_eq!(refused.status(), 401);
    let exposed = refused.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("www-authenticate"), "{exposed}");

    let foreign = stranger.post(&initialize());
    let foreign = foreign
        .header("origin", "https://evil.example")
        .send()
        .await;
    assert_eq!(foreign.status(), 403);
    assert_eq!(foreign.header("www-authenticate"), None);
}

/// A principal that has reached its quota loses its own longest idle session, also while there is room.
#[tokio::test]
async fn a_principal_has_a_quota_of_sessions() {
    let server = Server::with_quota(8, 3).await;
    let kim = server.session("kim").await;
    let mut eve = Vec::new();
    for _ in 0..3 {
        eve.push(server.session("eve").await);
    }
    assert!(server.has_session("eve", &eve[0]).await, "used again");
    for _ in 0..2 {
        eve.push(server.session("eve").await);
    }
    let mut there = Vec::new();
    for id in &eve {
        there.push(server.has_session("eve", id).await);
    }
    assert_eq!(there, [true, false, false, true, true]);
    assert!(server.has_session("kim", &kim).await);
}

/// Callers that are not authenticated cannot occupy a connection.
#[tokio::test]
async fn a_stranger_gets_one_answer_on_a_connection() {
    let server = Server::start(8).await;
    let stranger = server.stranger();
    for request in [
        stranger.post(&initialize()),
        stranger.clone().at("/health").get(),
        stranger.clone().at("/elsewhere").get(),
        stranger.clone().at(METADATA).get(),
        stranger.request(Method::PUT, Bytes::new()),
        stranger.request(Method::OPTIONS, Bytes::new()),
    ] {
        let answer = request.send().await;
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let admitted = server.client("kim").post(&initialize()).send().await;
    assert_eq!(admitted.header("connection"), None);
}

/// SEC-03, SEC-04: a session exists for its own principal only. For others the answer is the same, to
/// the byte, as for a session that does not exist.
#[tokio::test]
async fn a_session_is_its_principals_only() {
    let server = Server::start(8).await;
    let id = server.session("kim").await;
    let eve = server.client("eve");
    let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
    let batch = json!([ping]);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let attempts = |id: &str| {
        let messages = eve.clone().at(&format!("/messages?session={id}"));
        [
            eve.post(&ping).header("mcp-session-id", id),
            eve.post(&batch).header("mcp-session-id", id),
            eve.post(&ready).header("mcp-session-id", id),
            eve.get().header("mcp-session-id", id),
            eve.get()
                .header("mcp-session-id", id)
                .header("last-event-id", "0-0"),
            eve.delete().header("mcp-session-id", id),
            messages.post(&ping),
        ]
    };
    let unknown = "A".repeat(id.len());
    for (attempt, nothing) in attempts(&id).into_iter().zip(attempts(&unknown)) {
        let shown = format!("{attempt:?}");
        let attempt = whole(attempt.send().await).await;
        assert_eq!(attempt.0, 404, "{shown}");
        assert_eq!(attempt, whole(nothing.send().await).await, "{shown}");
    }
    // An `initialize` with the id of this session opens another session.
    let again = eve.post(&initialize()).header("mcp-session-id", &id);
    let own = again
        .send()
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    assert_ne!(own, id);
    assert!(server.has_session("kim", &id).await);
    assert!(server.has_session("eve", &own).await);
}

/// The stream of 2024-11-05 carries answers of its own session only.
#[tokio::test]
async fn a_stream_of_the_old_transport_is_its_principals_only() {
    let server = Server::start(8).await;
    let kim = server.client("kim").at("/sse");
    let mut stream = kim.get().send().await;
    let endpoint = stream.event().await.unwrap().data;
    let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let theft = server.client("eve").at(&endpoint).post(&ping(1));
    assert_eq!(theft.send().await.status(), 404);
    let own = kim.at(&endpoint).post(&ping(2));
    assert_eq!(own.send().await.status(), 202);
    let answer = stream.next_message().await.unwrap();
    assert_eq!(answer["id"], 2);
}

/// A service sees the principal of a call, and the scopes of the credentials of the same request.
#[tokio::test]
async fn a_service_sees_the_principal_and_scopes_of_a_call() {
    let server = Server::start(8).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let http = HttpClient::new(&server.url, revision);
        let http = http.with_header("authorization", "Bearer kim read");
        let mut client = Client::over(http, revision, json!({}));
        client.open().await;
        let called = client.call("who", json!({})).await;
        assert_eq!(called["content"][0]["text"], "kim [read]", "{revision}");
    }
    // The token was renewed during the session, with an additional scope.
    let id = server.session("kim read").await;
    let params = json!({"name": "who", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let renewed = server.client("kim read write").post(&call);
    let called = renewed.header("mcp-session-id", &id).send().await;
    let called = &called.messages().await[0];
    assert_eq!(called["result"]["content"][0]["text"], "kim [read write]");
}

/// A principal that opens many sessions evicts only its own.
#[tokio::test]
async fn a_principal_with_many_sessions_evicts_only_its_own() {
    let server = Server::start(4).await;
    let kim = server.session("kim").await;
    let mut eves = Vec::new();
    for _ in 0..8 {
        eves.push(server.session("eve").await);
    }
    assert!(server.has_session("kim", &kim).await);
    assert!(!server.has_session("eve", &eves[0]).await);
    assert!(server.has_session("eve", &eves[7]).await);
    // A newcomer evicts a session of the principal with the most.
    let lee = server.session("lee").await;
    assert!(server.has_session("kim", &kim).await);
    assert!(server.has_session("lee", &lee).await);
    assert!(!server.has_session("eve", &eves[5]).await);
}
