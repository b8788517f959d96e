//! Sends a client's messages as HTTP requests.

use std::collections::HashMap;
use std::time::Duration;

use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::header::encode_value;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::answers;
use crate::http::{HttpClient, HttpRequest, HttpResponse};
use crate::timeout::within;

/// The capacity of the queue of received messages.
const INBOX_CAPACITY: usize = 1024;

/// The HTTP transport of a client: each request runs in its own task, and all received messages go
/// to one queue.
#[derive(Debug)]
pub(super) struct OverHttp {
    client: HttpClient,
    /// Responses arrive on a separate event stream, not in the response to the POST.
    two_endpoints: bool,
    agreed: Option<Revision>,
    outbox: mpsc::Sender<Value>,
    inbox: mpsc::Receiver<Value>,
    tasks: JoinSet<()>,
    running: HashMap<String, AbortHandle>,
}

impl OverHttp {
    pub(super) fn streamable(client: HttpClient) -> Self {
        let (outbox, inbox) = mpsc::channel(INBOX_CAPACITY);
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

    /// SSE24-02: the first event has the endpoint for messages.
    pub(super) async fn http_sse(client: HttpClient) -> Self {
        let mut stream = client.get().send().await;
        assert_eq!(stream.status(), 200, "{:?}", stream.headers());
        let first = stream.event().await;
        let endpoint = first.filter(|event| event.event.as_deref() == Some("endpoint"));
        let Some(endpoint) = endpoint else {
            panic!("the stream does not begin with the endpoint");
        };
        let mut wire = Self::streamable(client.at(&endpoint.data));
        wire.two_endpoints = true;
        wire.tasks
            .spawn(forward_messages(stream, wire.outbox.clone()));
        wire
    }

    /// Sets the negotiated revision, which later requests send as a header (LIFE-10).
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
        self.tasks
            .spawn(forward_messages(stream, self.outbox.clone()));
    }

    pub(super) async fn request(&mut self, id: &Value, method: &str, request: &Value) {
        let post = self.client.post(request);
        let task = if self.two_endpoints {
            self.tasks.spawn(send_without_response(post))
        } else if method == "initialize" && version(request).is_null() {
            return self.initialize(post).await;
        } else {
            let post = with_mirrored_headers(post, method, request);
            let (client, outbox) = (self.client.clone(), self.outbox.clone());
            self.tasks
                .spawn(send_request(client, post, id.clone(), outbox))
        };
        self.running.insert(id.to_string(), task);
    }

    pub(super) async fn say(&mut self, message: &Value) {
        send_without_response(self.client.post(message)).await;
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

    /// The session id must be known before the next request is sent.
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

/// The version in the metadata of a stateless request.
fn version(request: &Value) -> &Value {
    &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
}

/// HDR26-01, HDR26-03: a stateless request repeats members of its body in headers.
fn with_mirrored_headers(mut post: HttpRequest, method: &str, request: &Value) -> HttpRequest {
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

/// Sends a request and receives its response; resumes the stream if the server closes it
/// (HTTPLC-06, HTTPLC-07).
async fn send_request(
    client: HttpClient,
    post: HttpRequest,
    id: Value,
    outbox: mpsc::Sender<Value>,
) {
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
        // A stream without further messages is over: the request was cancelled.
        let Some(last_event) = last_event.as_ref().filter(|_| progressed) else {
            return;
        };
        tokio::time::sleep(Duration::from_millis(retry.unwrap_or(0))).await;
        let resume = client.get().header("last-event-id", last_event);
        answer = resume.send().await;
    }
}

/// Forwards every message of a stream until its end.
async fn forward_messages(mut stream: HttpResponse, outbox: mpsc::Sender<Value>) {
    while let Some(message) = stream.next_message().await {
        deliver(&outbox, message).await;
    }
}

/// Sends a message that has no response.
async fn send_without_response(post: HttpRequest) {
    let answer = post.send().await;
    let status = answer.status();
    let refusal = answer.text().await;
    assert_eq!(status, 202, "refused: {refusal}");
}

async fn deliver(outbox: &mpsc::Sender<Value>, message: Value) {
    // After the client is closed, the result is not needed.
    drop(outbox.send(message).await);
}

/// Propagates the panic of a task to the test.
fn propagate(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
