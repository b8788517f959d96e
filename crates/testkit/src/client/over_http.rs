//! A client's messages as HTTP requests.

use std::collections::HashMap;
use std::time::Duration;

use plexus_mcp::Revision;
use plexus_mcp::header::encode_value;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::answers;
use crate::http::{Answer, HttpClient, HttpRequest};
use crate::patience::within;

/// How many messages may wait to be looked at.
const INBOX: usize = 1024;

/// The HTTP side of a client: each request runs in a task of its own, and what it brings ends up
/// in one inbox.
#[derive(Debug)]
pub(super) struct OverHttp {
    client: HttpClient,
    /// Answers come on a stream of their own, not in answer to the POST.
    two_endpoints: bool,
    agreed: Option<Revision>,
    outbox: mpsc::Sender<Value>,
    inbox: mpsc::Receiver<Value>,
    tasks: JoinSet<()>,
    running: HashMap<String, AbortHandle>,
}

impl OverHttp {
    pub(super) fn streamable(client: HttpClient) -> Self {
        let (outbox, inbox) = mpsc::channel(INBOX);
        Self {
            client,
            two_endpoints: false,
            agreed: None,
            outbox,
            inbox,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    /// SSE24-02: the first event says where messages go.
    pub(super) async fn two_endpoints(client: HttpClient) -> Self {
        let mut stream = client.get().send().await;
        assert_eq!(stream.status(), 200, "{:?}", stream.headers());
        let first = stream.event().await;
        let endpoint = first.filter(|event| event.event.as_deref() == Some("endpoint"));
        let Some(endpoint) = endpoint else {
            panic!("the stream does not begin with the endpoint");
        };
        let mut wire = Self::streamable(client.at(&endpoint.data));
        wire.two_endpoints = true;
        wire.tasks.spawn(pump(stream, wire.outbox.clone()));
        wire
    }

    /// What the handshake settled: from now on, requests say it (LIFE-10).
    pub(super) fn agree(&mut self, revision: Revision) {
        self.agreed = Some(revision);
        if revision.features().version_header && !self.two_endpoints {
            self.client = self
                .client
                .clone()
                .with_header("mcp-protocol-version", revision.as_str());
        }
    }

    /// Opens the stream for messages that belong to no request.
    pub(super) async fn listen(&mut self) {
        if self.two_endpoints {
            return;
        }
        let stream = self.client.get().send().await;
        assert_eq!(stream.status(), 200, "{:?}", stream.headers());
        self.tasks.spawn(pump(stream, self.outbox.clone()));
    }

    pub(super) async fn request(&mut self, id: &Value, method: &str, request: &Value) {
        let post = self.client.post(request);
        let task = if self.two_endpoints {
            self.tasks.spawn(accepted(post))
        } else if method == "initialize" && version(request).is_null() {
            return self.initialize(post).await;
        } else {
            let post = mirrored(post, method, request);
            let (client, outbox) = (self.client.clone(), self.outbox.clone());
            self.tasks.spawn(carry(client, post, id.clone(), outbox))
        };
        self.running.insert(id.to_string(), task);
    }

    pub(super) async fn say(&mut self, message: &Value) {
        accepted(self.client.post(message)).await;
    }

    /// Closes the connection of a request.
    pub(super) fn disconnect(&mut self, id: &Value) {
        if let Some(task) = self.running.remove(&id.to_string()) {
            task.abort();
        }
    }

    pub(super) async fn receive(&mut self) -> Value {
        within("a message of the server", async {
            loop {
                tokio::select! {
                    biased;
                    Some(message) = self.inbox.recv() => return message,
                    Some(ended) = self.tasks.join_next() => propagate(ended),
                }
            }
        })
        .await
    }

    /// The session must be known before the next request is sent.
    async fn initialize(&mut self, post: HttpRequest) {
        let answer = post.send().await;
        if let Some(session) = answer.header("mcp-session-id").map(str::to_owned) {
            self.client = self.client.clone().with_header("mcp-session-id", &session);
        }
        let message = answer.message().await;
        deliver(&self.outbox, message).await;
    }

    pub(super) async fn close(mut self) -> Vec<Value> {
        if self.agreed.is_some() && !self.two_endpoints {
            let answer = self.client.delete().send().await;
            assert_eq!(answer.status(), 204, "the session cannot be ended");
        }
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            propagate(ended);
        }
        self.inbox.close();
        let mut rest = Vec::new();
        while let Some(message) = self.inbox.recv().await {
            rest.push(message);
        }
        rest
    }
}

/// The version that a stateless request says it is in.
fn version(request: &Value) -> &Value {
    &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
}

/// HDR26-01, HDR26-03: a stateless request says in its headers what it says in its body.
fn mirrored(mut post: HttpRequest, method: &str, request: &Value) -> HttpRequest {
    let Some(version) = version(request).as_str() else {
        return post;
    };
    let params = &request["params"];
    post = post
        .header("mcp-protocol-version", version)
        .header("mcp-method", method);
    let name = params["name"].as_str().or(params["uri"].as_str());
    match name {
        Some(name) => post.header("mcp-name", encode_value(name).as_bytes()),
        None => post,
    }
}

/// Carries a request to its answer, coming back for it if the server lets the client go
/// (HTTPLC-06, HTTPLC-07).
async fn carry(client: HttpClient, post: HttpRequest, id: Value, outbox: mpsc::Sender<Value>) {
    let mut answer = post.send().await;
    let mut last_event = None;
    loop {
        if !answer.is_stream() {
            deliver(&outbox, answer.message().await).await;
            return;
        }
        let mut retry = None;
        let mut progressed = false;
        while let Some(event) = answer.event().await {
            progressed = true;
            retry = retry.or(event.retry);
            last_event = event.id.or(last_event);
            if let Some(message) = event.message {
                let is_answer = answers(&message, &id);
                deliver(&outbox, message).await;
                if is_answer {
                    return;
                }
            }
        }
        // A stream that brings nothing more is over: the request was cancelled.
        let Some(last_event) = last_event.as_ref().filter(|_| progressed) else {
            return;
        };
        tokio::time::sleep(Duration::from_millis(retry.unwrap_or(0))).await;
        let resume = client.get().header("last-event-id", last_event);
        answer = resume.send().await;
    }
}

/// Brings every message of a stream, to its end.
async fn pump(mut stream: Answer, outbox: mpsc::Sender<Value>) {
    while let Some(message) = stream.next_message().await {
        deliver(&outbox, message).await;
    }
}

/// Sends what has no answer of its own.
async fn accepted(post: HttpRequest) {
    let answer = post.send().await;
    let status = answer.status();
    let refusal = answer.text().await;
    assert_eq!(status, 202, "refused: {refusal}");
}

async fn deliver(outbox: &mpsc::Sender<Value>, message: Value) {
    // Once the client is closed, nobody is interested any more.
    drop(outbox.send(message).await);
}

/// A task that failed fails the test.
fn propagate(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
