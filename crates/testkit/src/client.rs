//! A client of one revision, the same over every transport.

mod over_http;

use std::collections::VecDeque;

use plexus_mcp::{Era, Revision};
use serde_json::{Map, Value, json};

use crate::http::HttpClient;
use crate::stdio::StdioClient;
use over_http::OverHttp;

/// The ways to reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "MCP defines exactly these")]
pub enum Transport {
    /// Pipes.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// What the server sent before the answer.
    pub before: Vec<Value>,
    /// The answer.
    pub response: Value,
}

/// A client that follows the rules of one revision.
#[derive(Debug)]
pub struct Client {
    revision: Revision,
    capabilities: Value,
    last_id: i64,
    /// Received, but not asked for yet.
    backlog: VecDeque<Value>,
    wire: Wire,
}

#[derive(Debug)]
enum Wire {
    Stdio(Box<StdioClient>),
    Http(Box<OverHttp>),
}

impl Client {
    /// A client of the server that `pipes` lead to.
    pub fn stdio(pipes: StdioClient, revision: Revision, capabilities: Value) -> Self {
        Self::new(Wire::Stdio(Box::new(pipes)), revision, capabilities)
    }

    /// A client of the Streamable HTTP endpoint at `url`.
    pub fn http(url: &str, revision: Revision, capabilities: Value) -> Self {
        Self::over(HttpClient::new(url, revision), revision, capabilities)
    }

    /// A client that sends what `client` sends, such as credentials, with every request.
    pub fn over(client: HttpClient, revision: Revision, capabilities: Value) -> Self {
        let wire = OverHttp::streamable(client);
        Self::new(Wire::Http(Box::new(wire)), revision, capabilities)
    }

    /// A client of the HTTP+SSE stream at `url`.
    pub async fn sse(url: &str, revision: Revision, capabilities: Value) -> Self {
        let wire = OverHttp::two_endpoints(HttpClient::new(url, revision)).await;
        Self::new(Wire::Http(Box::new(wire)), revision, capabilities)
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether requests stand alone.
    pub fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Stateless
    }

    /// Begins as the revision wants it: with a handshake, or by asking who is there. Gives the
    /// result of that.
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

    /// Sends a request, and gives its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.begin_as(&id, method, params).await;
        id
    }

    /// Sends a request with an id of the test's choice.
    pub async fn begin_as(&mut self, id: &Value, method: &str, params: Value) {
        let params = self.with_meta(params);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match &mut self.wire {
            Wire::Stdio(pipes) => pipes.send(&request).await,
            Wire::Http(wire) => wire.request(id, method, &request).await,
        }
    }

    /// The answer to the request with this id.
    pub async fn response(&mut self, id: &Value) -> Value {
        self.expect("the response", |message| answers(message, id))
            .await
    }

    /// Sends a request, and gives all that came of it.
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

    /// Sends a request, and gives the result, or fails.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut response = self.response(&id).await;
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].take()
    }

    /// Sends a request that must fail, and gives the error.
    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut response = self.response(&id).await;
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].take()
    }

    /// Calls a tool, and gives the result.
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

    /// Gives up a request, in the way of the revision and the transport.
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

    /// The first message received that is `wanted`; others are kept for later.
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

    /// Messages that were received on the way and never asked for.
    pub fn backlog(&self) -> impl Iterator<Item = &Value> {
        self.backlog.iter()
    }

    /// Ends the conversation in an orderly way, and gives what was never asked for, the last words
    /// of the server included.
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

    /// META26-01: what every stateless request says of its client. What the test says itself stays.
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

/// Whether `message` is the answer to request `id`.
fn answers(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message["id"] == *id
}

fn key(name: &str) -> String {
    format!("io.modelcontextprotocol/{name}")
}
