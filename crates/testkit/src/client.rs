//! A client of one revision, the same over every transport.

mod over_http;

use std::collections::VecDeque;

use plexus_mcp_protocol::{Era, Revision};
use serde_json::{Map, Value, json};

use crate::http::HttpClient;
use crate::stdio::StdioClient;
use over_http::OverHttp;

/// The transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "MCP defines exactly these")]
pub enum Transport {
    /// stdio.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// The messages before the response.
    pub before: Vec<Value>,
    /// The response.
    pub response: Value,
}

/// A client that follows the rules of one revision.
#[derive(Debug)]
pub struct Client {
    revision: Revision,
    capabilities: Value,
    last_id: i64,
    /// Messages that were received, but not requested by the test yet.
    backlog: VecDeque<Value>,
    wire: Wire,
}

#[derive(Debug)]
enum Wire {
    Stdio(Box<StdioClient>),
    Http(Box<OverHttp>),
}

impl Client {
    /// A client of the server process of `pipes`.
    pub fn stdio(pipes: StdioClient, revision: Revision, capabilities: Value) -> Self {
        Self::new(Wire::Stdio(Box::new(pipes)), revision, capabilities)
    }

    /// A client of the Streamable HTTP endpoint at `url`.
    pub fn http(url: &str, revision: Revision, capabilities: Value) -> Self {
        Self::over(HttpClient::new(url, revision), revision, capabilities)
    }

    /// A client that uses `client`, with its headers, for every request.
    pub fn over(client: HttpClient, revision: Revision, capabilities: Value) -> Self {
        let wire = OverHttp::streamable(client);
        Self::new(Wire::Http(Box::new(wire)), revision, capabilities)
    }

    /// A client of the HTTP+SSE stream at `url`.
    pub async fn sse(url: &str, revision: Revision, capabilities: Value) -> Self {
        let wire = OverHttp::http_sse(HttpClient::new(url, revision)).await;
        Self::new(Wire::Http(Box::new(wire)), revision, capabilities)
    }

    /// The revision of the client.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether the revision is stateless.
    pub fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Stateless
    }

    /// Opens the session as the revision requires: with a handshake or `server/discover`. Returns
    /// the result.
    pub async fn open(&mut self) -> Value {
        if self.is_stateless() {
            return self.result("server/discover", json!({})).await;
        }
        let params = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": {"name": "scripted", "version": "1.0.0"},
        });
        let greeting = self.result("initialize", params).await;
        if let Wire::Http(wire) = &mut self.wire {
            wire.agree(self.revision);
        }
        self.notify("notifications/initialized", None).await;
        if let Wire::Http(wire) = &mut self.wire {
            wire.listen().await;
        }
        greeting
    }

    /// Sends a request, and returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.begin_as(&id, method, params).await;
        id
    }

    /// Sends a request with this id.
    pub async fn begin_as(&mut self, id: &Value, method: &str, params: Value) {
        let params = self.with_meta(params);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match &mut self.wire {
            Wire::Stdio(pipes) => pipes.send(&request).await,
            Wire::Http(wire) => wire.request(id, method, &request).await,
        }
    }

    /// Waits for the response to the request with this id.
    pub async fn response(&mut self, id: &Value) -> Value {
        self.expect("the response", |message| answers(message, id))
            .await
    }

    /// Sends a request; returns the response and all messages before it.
    pub async fn exchange(&mut self, method: &str, params: Value) -> Exchange {
        let id = self.begin(method, params).await;
        let mut before = Vec::new();
        loop {
            let message = self.receive().await;
            if answers(&message, &id) {
                let response = message;
                return Exchange { before, response };
            }
            before.push(message);
        }
    }

    /// Sends a request, and returns the result. An error fails the test.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut response = self.response(&id).await;
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].take()
    }

    /// Sends a request that must fail, and returns the error.
    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut response = self.response(&id).await;
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].take()
    }

    /// Calls a tool, and returns the result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.result("tools/call", params).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Option<Value>) {
        let mut notification = json!({"jsonrpc": "2.0", "method": method});
        if let Some(params) = params {
            notification["params"] = params;
        }
        self.say(&notification).await;
    }

    /// Answers a request of the server.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.say(&response).await;
    }

    /// Cancels a request, as the revision and the transport require.
    pub async fn cancel(&mut self, id: &Value) {
        if self.is_stateless()
            && let Wire::Http(wire) = &mut self.wire
        {
            wire.disconnect(id);
            return;
        }
        let params = json!({"requestId": id, "reason": "the test wants it"});
        self.notify("notifications/cancelled", Some(params)).await;
    }

    /// The next message with this method, a request or a notification.
    pub async fn expect_method(&mut self, method: &str) -> Value {
        self.expect(method, |message| message["method"] == method)
            .await
    }

    /// Waits for a message that is `wanted`; others are kept.
    pub async fn expect(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.backlog.iter().position(&wanted)
            && let Some(message) = self.backlog.remove(place)
        {
            return message;
        }
        let search = async {
            loop {
                let message = self.receive().await;
                if wanted(&message) {
                    return message;
                }
                self.backlog.push_back(message);
            }
        };
        crate::within(what, search).await
    }

    /// Messages that were received but not requested by the test.
    pub fn backlog(&self) -> impl Iterator<Item = &Value> {
        self.backlog.iter()
    }

    /// Closes the session; returns all messages that the test did not request, including the last
    /// ones.
    pub async fn close(self) -> Vec<Value> {
        let mut rest = Vec::from(self.backlog);
        match self.wire {
            Wire::Stdio(pipes) => {
                let (last, exit) = pipes.finish().await;
                assert_eq!(exit.code, Some(0), "the server failed: {}", exit.log);
                rest.extend(last);
            }
            Wire::Http(wire) => rest.extend(wire.close().await),
        }
        rest
    }

    fn new(wire: Wire, revision: Revision, capabilities: Value) -> Self {
        Self {
            revision,
            capabilities,
            last_id: 0,
            backlog: VecDeque::new(),
            wire,
        }
    }

    async fn receive(&mut self) -> Value {
        match &mut self.wire {
            Wire::Stdio(pipes) => pipes.receive().await,
            Wire::Http(wire) => wire.receive().await,
        }
    }

    async fn say(&mut self, message: &Value) {
        match &mut self.wire {
            Wire::Stdio(pipes) => pipes.send(message).await,
            Wire::Http(wire) => wire.say(message).await,
        }
    }

    /// META26-01: adds the client's metadata to a stateless request. Members that the test set are
    /// kept.
    fn with_meta(&self, mut params: Value) -> Value {
        if !self.is_stateless() {
            return params;
        }
        let mut meta = Map::from_iter([
            (key("protocolVersion"), json!(self.revision.as_str())),
            (key("clientCapabilities"), self.capabilities.clone()),
            (
                key("clientInfo"),
                json!({"name": "scripted", "version": "1.0.0"}),
            ),
        ]);
        if let Value::Object(own) = params["_meta"].take() {
            meta.extend(own);
        }
        params["_meta"] = Value::Object(meta);
        params
    }
}

/// Whether `message` is the response to request `id`.
fn answers(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message["id"] == *id
}

fn key(name: &str) -> String {
    format!("io.modelcontextprotocol/{name}")
}
