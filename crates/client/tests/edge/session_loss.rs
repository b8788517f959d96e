//! Sessions that a server loses, for example because it was restarted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plexus_mcp_core::Service;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Stream, tool};
use plexus_testkit::within;
use serde_json::json;

use crate::support::{Caller, LEGACY, call_tool, connected, for_clients, http, tools_become};

const URI: &str = "a://b";

/// The status and the error with which servers answer in a session that they do not know.
type Refusal = (u16, &'static str);

/// Common servers answer with 400. The second text is of the TypeScript SDK after a restart.
const REFUSALS: [Refusal; 2] = [
    (400, "no valid session id"),
    (400, "Bad Request: Server not initialized"),
];
const REFUSAL_WITH_STATUS_200: Refusal = (200, "Session not found");

/// A server of the handshake era whose restarts a test simulates.
struct Restarting {
    server: HttpServer,
    restarts: Arc<AtomicUsize>,
    streams: Arc<Mutex<Vec<Stream>>>,
}

impl Restarting {
    /// `has_stream` says whether it offers the GET stream. `refusal` is its answer in an unknown
    /// session.
    async fn start(has_stream: bool, (status, refusal): Refusal) -> Self {
        let restarts = Arc::new(AtomicUsize::new(0));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (counted, opened) = (Arc::clone(&restarts), Arc::clone(&streams));
        let answer = move |request: &Received| {
            let generation = counted.load(Ordering::SeqCst);
            let session = format!("session {generation}");
            let name = format!("tool_{generation}");
            let offer = Offer::tools(LEGACY, [tool(&name)])
                .declaring("resources", json!({"subscribe": true}));
            let is_get = request.method == ::http::Method::GET;
            match request.mcp() {
                "initialize" => request
                    .reply_from(&offer)
                    .with_header("mcp-session-id", &session),
                _ if is_get && !has_stream => Reply::status(405),
                _ if request.header("mcp-session-id") != Some(session.as_str()) => {
                    let error = json!({"code": -32000, "message": refusal});
                    let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
                    Reply::status(status).with_json(&body.to_string())
                }
                _ if is_get => {
                    let (reply, stream) = Reply::stream();
                    opened.lock().unwrap().push(stream);
                    reply
                }
                "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
                "ping" | "resources/subscribe" => Reply::json(&request.result(&json!({}))),
                _ => request.reply_from(&offer),
            }
        };
        Self {
            server: HttpServer::start(answer).await,
            restarts,
            streams,
        }
    }

    fn restart(&self) {
        self.restarts.fetch_add(1, Ordering::SeqCst);
        self.streams.lock().unwrap().clear();
    }
}

/// The GET stream ends with the session, and is refused with 400 afterwards.
#[tokio::test]
async fn a_session_whose_stream_is_refused_is_renewed() {
    for refusal in REFUSALS {
        let server = Restarting::start(true, refusal).await;
        let upstream = connected(http(&server.server)).await;
        tools_become(&upstream, &["tool_0"]).await;
        server.restart();
        tools_become(&upstream, &["tool_1"]).await;
    }
}

/// The session of a caller is found lost, so the server's own session is checked and renewed.
#[tokio::test]
async fn a_lost_session_of_a_caller_renews_the_servers_own() {
    for refusal in REFUSALS.into_iter().chain([REFUSAL_WITH_STATUS_200]) {
        let server = Restarting::start(false, refusal).await;
        let upstream = connected(for_clients(http(&server.server))).await;
        call_tool(&upstream, "tool_0").await;
        server.restart();
        call_tool(&upstream, "tool_1").await;
        tools_become(&upstream, &["tool_1"]).await;
    }
}

/// A call in the server's own session finds it lost, and is carried out in the next one.
#[tokio::test]
async fn a_call_renews_the_servers_own_session() {
    for refusal in REFUSALS.into_iter().chain([REFUSAL_WITH_STATUS_200]) {
        let server = Restarting::start(false, refusal).await;
        let upstream = connected(http(&server.server)).await;
        call_tool(&upstream, "tool_0").await;
        server.restart();
        call_tool(&upstream, "tool_1").await;
        tools_become(&upstream, &["tool_1"]).await;
    }
}

/// A subscription that finds the session lost is made again in the new one.
#[tokio::test]
async fn a_subscription_renews_a_lost_session() {
    let server = Restarting::start(false, REFUSALS[0]).await;
    let upstream = connected(http(&server.server)).await;
    call_tool(&upstream, "tool_0").await;
    server.restart();
    let peer = Caller::default().peer();
    let watching = within("the subscription", upstream.subscribe(&peer, URI)).await;
    let _updates = watching.unwrap();
    tools_become(&upstream, &["tool_1"]).await;
}
