//! HTTP responses of a server.

use std::sync::{Arc, Mutex};

use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use plexus_mcp_wire::sse;
use serde_json::Value;
use tokio::task::JoinSet;

use super::lock;
use crate::timeout::within;
use crate::transcript::Transcript;

/// The maximum size of an event, in bytes.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// A response whose head has been received. Dropping it closes the connection.
#[derive(Debug)]
pub struct HttpResponse {
    head: Parts,
    body: Incoming,
    decoder: sse::Decoder,
    transcript: Arc<Mutex<Transcript>>,
    _connection: JoinSet<()>,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamEvent {
    /// The event id, for resuming the stream.
    pub id: Option<String>,
    /// The event type.
    pub event: Option<String>,
    /// The reconnection delay, in milliseconds.
    pub retry: Option<u64>,
    /// The data.
    pub data: String,
    /// The message in the data, if it is one.
    pub message: Option<Value>,
}

impl HttpResponse {
    pub(super) fn new(
        response: Response<Incoming>,
        transcript: Arc<Mutex<Transcript>>,
        connection: JoinSet<()>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            head,
            body,
            decoder: sse::Decoder::new(MAX_EVENT_BYTES),
            transcript,
            _connection: connection,
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// A header, if it is present and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// Whether it is an event stream.
    pub fn is_stream(&self) -> bool {
        self.has_type("text/event-stream")
    }

    /// The whole body as text.
    pub async fn text(mut self) -> String {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk().await {
            text.extend_from_slice(&chunk);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The body as one message.
    pub async fn message(self) -> Value {
        assert!(
            self.has_type("application/json"),
            "one message was expected, not {:?}",
            self.head
        );
        let transcript = Arc::clone(&self.transcript);
        let text = self.text().await;
        lock(&transcript).received(text.as_bytes())
    }

    /// The next event of a stream; `None` at its end.
    pub async fn event(&mut self) -> Option<StreamEvent> {
        assert!(
            self.is_stream(),
            "a stream was expected, not {:?}",
            self.head
        );
        loop {
            if let Some(event) = self.decoder.next() {
                let event = event.unwrap_or_else(|error| panic!("{error}"));
                return Some(self.checked(event));
            }
            let chunk = self.chunk().await?;
            self.decoder.feed(&chunk);
        }
    }

    /// The next message of a stream; `None` at its end.
    pub async fn next_message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.event().await?.message {
                return Some(message);
            }
        }
    }

    /// All messages until the end, from a JSON body or a stream. A stream must end by itself.
    pub async fn messages(mut self) -> Vec<Value> {
        if !self.is_stream() {
            return vec![self.message().await];
        }
        let mut messages = Vec::new();
        while let Some(message) = self.next_message().await {
            messages.push(message);
        }
        messages
    }

    fn checked(&self, event: sse::Event) -> StreamEvent {
        let is_message = event.event.as_deref().is_none_or(|name| name == "message");
        let message = (is_message && !event.data.is_empty())
            .then(|| lock(&self.transcript).received(&event.data));
        StreamEvent {
            id: event.id.map(String::from),
            event: event.event.map(String::from),
            retry: event.retry,
            data: String::from_utf8_lossy(&event.data).into_owned(),
            message,
        }
    }

    async fn chunk(&mut self) -> Option<bytes::Bytes> {
        loop {
            let frame = within("more of the body", self.body.frame()).await?;
            let frame = frame.unwrap_or_else(|error| panic!("the body broke off: {error}"));
            if let Ok(data) = frame.into_data() {
                return Some(data);
            }
        }
    }

    fn has_type(&self, wanted: &str) -> bool {
        self.header(CONTENT_TYPE.as_str())
            .is_some_and(|given| given.split(';').next() == Some(wanted))
    }
}
