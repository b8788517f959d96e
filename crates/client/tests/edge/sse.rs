//! HTTP+SSE of 2024-11-05.

use std::sync::{Arc, Mutex};

use ::http::{HeaderValue, Method};
use plexus_mcp_client::{Definition, ServerState, Target};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Stream, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    Caller, asked, call, call_fails, connected, connected_once, during, minimal, raw, refused,
    revision, status, status_becomes, target, tools, tools_become, value,
};

/// A server with its stream at `/mcp` and its message endpoint at `/messages`.
pub(crate) struct Sse {
    pub(crate) http: HttpServer,
    /// The stream of the last connection.
    stream: Arc<Mutex<Option<Stream>>>,
}

impl Sse {
    pub(crate) fn definition(&self) -> Definition {
        minimal(Target::Sse(target(&self.http.url())))
    }

    fn say(&self, message: &Value) {
        self.say_text(&message.to_string());
    }

    /// Sends `text` as an event; it need not be a message.
    pub(crate) fn say_text(&self, text: &str) {
        let stream = self.stream.lock().unwrap();
        let stream = stream.as_ref().expect("a stream");
        stream.write_now(&format!("data: {text}\n\n"));
    }

    fn end_stream(&self) {
        drop(self.stream.lock().unwrap().take());
    }
}

/// Starts the server; `otherwise` can override its replies.
pub(crate) async fn server(
    offer: Offer,
    otherwise: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
) -> Sse {
    let stream = Arc::new(Mutex::new(None::<Stream>));
    let opened = Arc::clone(&stream);
    let http = HttpServer::start(move |request| {
        if let Some(reply) = otherwise(request) {
            return reply;
        }
        if request.method == Method::GET {
            let (reply, writer) = Reply::stream();
            writer.write_now("event: endpoint\ndata: /messages?session=7\n\n");
            *opened.lock().unwrap() = Some(writer);
            return reply;
        }
        if request.body["method"] == "tools/call" {
            return Reply::status(202);
        }
        if !request.body["id"].is_null() && !request.mcp().is_empty() {
            let answer = match offer.answer(request.mcp()) {
                Ok(result) => request.result(&result),
                Err(error) => json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}),
            };
            opened.lock().unwrap().as_ref().unwrap().say_now(&answer);
        }
        Reply::status(202)
    })
    .await;
    Sse { http, stream }
}

async fn plain() -> Sse {
    let offer = Offer::tools(Revision::V2024_11_05, [tool("a")]);
    server(offer, |_| None).await
}

/// S001-29, SSE24-02, SSE24-03, S001-55, S001-D03: answers come on the stream.
#[tokio::test]
async fn answers_come_on_the_stream() {
    let server = plain().await;
    let upstream = connected(server.definition()).await;
    assert_eq!(revision(&upstream), Revision::V2024_11_05);
    assert_eq!(tools(&upstream), ["a"]);
    let first = server.http.requested(Method::GET).await;
    assert_eq!(first.header("accept"), Some("text/event-stream"));

    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, server.http.received("tools/call")).await;
    assert_eq!(request.path, "/messages?session=7");
    assert_eq!(request.header("content-type"), Some("application/json"));
    server.say(&request.result(&json!({"content": [], "x": 1})));
    let result = within("the result", calling).await.unwrap();
    assert_eq!(value(&result), json!({"content": [], "x": 1}));
}

#[tokio::test]
async fn credentials_go_with_every_request() {
    let server = plain().await;
    let mut target = target(&server.http.url());
    let secret = HeaderValue::from_static("Bearer secret");
    target.headers.insert("authorization", secret);
    let upstream = connected(minimal(Target::Sse(target))).await;
    assert_eq!(tools(&upstream), ["a"]);
    for request in server.http.all() {
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
    }
}

/// SSE24-02: messages, and credentials with them, go to the stream's own origin only.
#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    let elsewhere = HttpServer::start(|_| Reply::status(202)).await;
    let endpoint = format!("event: endpoint\ndata: {}\n\n", elsewhere.url());
    let server =
        HttpServer::start(move |_| Reply::status(200).with_body("text/event-stream", &endpoint))
            .await;
    let (upstream, error) = refused(minimal(Target::Sse(target(&server.url())))).await;
    assert!(error.to_string().contains("another origin"), "{error}");
    assert_eq!(status(&upstream).state, ServerState::Failed);
    assert!(elsewhere.all().is_empty());
}

#[tokio::test]
async fn a_stream_that_names_no_endpoint_is_refused() {
    for events in ["", "data: {}\n\n", "event: endpoint\ndata: http://[\n\n"] {
        let server =
            HttpServer::start(move |_| Reply::status(200).with_body("text/event-stream", events))
                .await;
        let (_, error) = refused(minimal(Target::Sse(target(&server.url())))).await;
        assert!(error.to_string().contains("endpoint"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_wants_credentials_needs_auth() {
    let server = HttpServer::start(|_| Reply::status(401)).await;
    let (upstream, _) = refused(minimal(Target::Sse(target(&server.url())))).await;
    assert_eq!(status(&upstream).state, ServerState::NeedsAuth);

    let offer = Offer::tools(Revision::V2024_11_05, [tool("a")]);
    let server = self::server(offer, |request| {
        (request.method == Method::POST).then(|| Reply::status(401))
    })
    .await;
    let (upstream, _) = refused(server.definition()).await;
    assert_eq!(status(&upstream).state, ServerState::NeedsAuth);
}

/// S001-56, C35: the end of the stream ends the session, and a new one can be opened. A call that
/// was in flight is not retried.
#[tokio::test]
async fn the_end_of_the_stream_ends_the_connection() {
    let server = plain().await;
    let upstream = connected_once(server.definition()).await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    during(&mut calling, server.http.received("tools/call")).await;
    server.end_stream();
    within("the failure", calling).await.unwrap_err();
    let status = status_becomes(&upstream, ServerState::Failed).await;
    assert!(status.reason.unwrap().contains("stream"));
    call_fails(&upstream, "a").await;

    upstream.reconnect().await.unwrap();
    let calls = server.http.methods();
    let calls = calls.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 1);
    assert_eq!(tools(&upstream), ["a"]);
}

#[tokio::test]
async fn a_message_that_is_not_taken_fails_its_call() {
    let offer = Offer::tools(Revision::V2024_11_05, [tool("a")]);
    let server = self::server(offer, |request| {
        (request.mcp() == "tools/call").then(|| Reply::status(500))
    })
    .await;
    let upstream = connected(server.definition()).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("500"), "{failure}");
    assert_eq!(status(&upstream).state, ServerState::Connected);
}

/// C36: requests and change notifications of the server on the stream.
#[tokio::test]
async fn the_server_may_ask_and_notify_on_the_stream() {
    let server = plain().await;
    let upstream = connected(server.definition()).await;
    server.say(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    let pong = server.http.answer(&json!("p")).await;
    assert_eq!(pong.body["result"], json!({}));
    server.http.received("tools/list").await;
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    server.http.received("tools/list").await;
    tools_become(&upstream, &["a"]).await;

    let caller = Caller::able(json!({"roots": {}}));
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, server.http.received("tools/call")).await;
    server.say(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    let ask = asked(&mut calling, &mut events).await;
    ask.answer(Ok(raw(&json!({"roots": [{"uri": "file:///r"}]}))));
    let answer = during(&mut calling, server.http.answer(&json!(5))).await;
    assert_eq!(answer.body["result"]["roots"][0]["uri"], "file:///r");
    server.say(&request.result(&json!({"content": []})));
    within("the result", calling).await.unwrap();
}

/// CAN-09: this transport cancels by message only.
#[tokio::test]
async fn a_dropped_call_is_cancelled_by_message() {
    let server = plain().await;
    let upstream = connected(server.definition()).await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, server.http.received("tools/call")).await;
    drop(calling);
    let cancelled = server.http.received("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], request.body["id"]);
    let mut next = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut next, server.http.received("tools/call")).await;
    server.say(&request.result(&json!({"content": []})));
    within("the result", next).await.unwrap();
}
