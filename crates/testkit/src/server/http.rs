//! A scripted server behind an HTTP endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::record::Record;
use super::{Offer, Reply};
use crate::timeout::within;

type Handler = dyn Fn(&Received) -> Reply + Send + Sync;

/// Answers every request as the test's handler says. Ends when dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    requests: Record<Received>,
    _connections: JoinSet<()>,
}

impl HttpServer {
    /// Starts a server on a free port that answers with the results of `handler`.
    pub async fn start(handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), handler).await
    }

    /// Starts a server at the address of an earlier one.
    pub async fn start_at(
        address: SocketAddr,
        handler: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        Self::start_on(listener, handler)
    }

    /// Starts a server on a listening socket.
    pub fn start_on(
        listener: TcpListener,
        handler: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let requests = Record::default();
        let mut connections = JoinSet::new();
        connections.spawn(accept(listener, Arc::new(handler), requests.clone()));
        Self {
            address,
            requests,
            _connections: connections,
        }
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits for the next POST of a message with this MCP method.
    pub async fn received(&self, method: &str) -> Received {
        let wanted = |request: &Received| request.method == Method::POST && request.mcp() == method;
        self.requests.take(method, wanted).await
    }

    /// Waits for the next request with this HTTP method.
    pub async fn requested(&self, method: Method) -> Received {
        let wanted = |request: &Received| request.method == method;
        self.requests.take(method.as_str(), wanted).await
    }

    /// Waits for the answer to the server's own request `id`.
    pub async fn answer(&self, id: &Value) -> Received {
        let wanted =
            |request: &Received| request.body["id"] == *id && request.body["method"].is_null();
        self.requests.take("an answer", wanted).await
    }

    /// All requests so far.
    pub fn all(&self) -> Vec<Received> {
        self.requests.all()
    }

    /// The MCP methods of all messages so far.
    pub fn methods(&self) -> Vec<String> {
        let requests = self.all();
        let methods = requests.iter().map(|request| request.mcp().to_owned());
        methods.filter(|method| !method.is_empty()).collect()
    }
}

/// A received request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Received {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The message; null if there is none.
    pub body: Value,
    /// The body as it was received.
    pub text: String,
    over: watch::Receiver<bool>,
}

impl Received {
    /// The MCP method; empty if there is none.
    pub fn mcp(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A header, if it is present and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The response to this message.
    pub fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    /// The error response to this message.
    pub fn error(&self, code: i64, message: &str) -> Value {
        let error = json!({"code": code, "message": message});
        json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error})
    }

    /// The reply of a server that offers `offer` and has no GET stream.
    pub fn reply_from(&self, offer: &Offer) -> Reply {
        if self.method != Method::POST {
            return Reply::status(405);
        }
        if self.body["id"].is_null() {
            return Reply::status(202);
        }
        match offer.answer(self.mcp()) {
            Ok(result) => Reply::json(&self.result(&result)),
            Err(error) => {
                Reply::json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error}))
            }
        }
    }

    /// Waits until the client has closed an exchange that was never answered, or whose stream is
    /// still open.
    pub async fn given_up(&self) {
        let mut over = self.over.clone();
        let waited = within("the client to give up", over.wait_for(|over| *over)).await;
        drop(waited);
    }
}

async fn accept(listener: TcpListener, handler: Arc<Handler>, requests: Record<Received>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (handler, requests) = (Arc::clone(&handler), requests.clone());
        let service = service_fn(move |request| {
            let (handler, requests) = (Arc::clone(&handler), requests.clone());
            async move {
                let (over, ended) = watch::channel(false);
                let received = received(request, ended).await;
                let reply = handler(&received);
                requests.add(received);
                reply.send(over).await
            }
        });
        connections.spawn(async move {
            let connection = http1::Builder::new();
            let served = connection.serve_connection(TokioIo::new(stream), service);
            // A client that disconnects, or a scripted disconnect, is not an error of the server.
            drop(served.await);
        });
    }
}

async fn received(request: Request<Incoming>, over: watch::Receiver<bool>) -> Received {
    let (head, body) = request.into_parts();
    let bytes = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    Received {
        method: head.method,
        path: head.uri.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        over,
    }
}
