//! The responses of a scripted HTTP server.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::timeout::within;

/// The capacity of the queue of a stream, in chunks; a full queue makes the test wait.
const STREAM_QUEUE_CAPACITY: usize = 64;

/// A response to an HTTP request.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(Bytes),
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
    /// The response never begins.
    Nothing,
    /// The connection is closed instead.
    HangUp,
}

impl Reply {
    /// A status without a body.
    ///
    /// # Panics
    /// If `status` is not a valid status code.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status);
        Self {
            status: status.unwrap_or_else(|error| panic!("{error}")),
            headers: HeaderMap::new(),
            content: Content::Whole(Bytes::new()),
        }
    }

    /// A JSON body.
    pub fn json(body: &Value) -> Self {
        Self::status(200).with_json(&body.to_string())
    }

    /// An event stream that ends after these messages.
    pub fn events(messages: &[Value]) -> Self {
        let events = messages
            .iter()
            .map(|message| format!("data: {message}\n\n"));
        Self::status(200).with_body("text/event-stream", &events.collect::<String>())
    }

    /// An event stream to which the test writes.
    pub fn stream() -> (Self, Stream) {
        let (pieces, queue) = mpsc::channel(STREAM_QUEUE_CAPACITY);
        let reply = Self::status(200).with_header("content-type", "text/event-stream");
        let content = Content::Pieces(queue);
        (Self { content, ..reply }, Stream { pieces })
    }

    /// No response, until the client gives up.
    pub fn never() -> Self {
        let content = Content::Nothing;
        Self {
            content,
            ..Self::status(200)
        }
    }

    /// No response; the connection is closed.
    pub fn hang_up() -> Self {
        let content = Content::HangUp;
        Self {
            content,
            ..Self::status(200)
        }
    }

    /// Adds a body of this content type.
    #[must_use]
    pub fn with_body(mut self, content_type: &str, body: &str) -> Self {
        self.content = Content::Whole(Bytes::copy_from_slice(body.as_bytes()));
        self.with_header(CONTENT_TYPE.as_str(), content_type)
    }

    /// Adds this text as JSON body.
    #[must_use]
    pub fn with_json(self, body: &str) -> Self {
        self.with_body("application/json", body)
    }

    /// Adds this header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let value = HeaderValue::from_str(value).unwrap_or_else(|error| panic!("{value}: {error}"));
        self.headers.insert(name, value);
        self
    }

    /// Converts it for hyper. `over` is dropped when the exchange ends.
    pub(super) async fn send(
        self,
        over: watch::Sender<bool>,
    ) -> Result<Response<ReplyBody>, io::Error> {
        let over = ExchangeGuard(over);
        let body = match self.content {
            Content::Whole(bytes) => ReplyBody::Whole(Some(bytes)),
            Content::Pieces(pieces) => ReplyBody::Pieces {
                pieces,
                _over: over,
            },
            Content::Nothing => {
                let never: Infallible = std::future::pending().await;
                drop(over);
                match never {}
            }
            Content::HangUp => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}

/// The test's end of an event stream. Dropping it ends the stream.
#[derive(Debug)]
pub struct Stream {
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Stream {
    /// Sends a message as an event.
    pub async fn say(&self, message: &Value) {
        self.write(&format!("data: {message}\n\n")).await;
    }

    /// Sends text, which need not be a valid event.
    pub async fn write(&self, text: &str) {
        let piece = Bytes::copy_from_slice(text.as_bytes());
        let sent = within("the client to read", self.pieces.send(Ok(piece))).await;
        assert!(sent.is_ok(), "the client has closed the stream");
    }

    /// Like `say`, for code that is not async.
    pub fn say_now(&self, message: &Value) {
        self.write_now(&format!("data: {message}\n\n"));
    }

    /// Like `write`, for code that is not async.
    pub fn write_now(&self, text: &str) {
        let piece = Bytes::copy_from_slice(text.as_bytes());
        let sent = self.pieces.try_send(Ok(piece));
        assert!(sent.is_ok(), "the client has left, or reads too slowly");
    }

    /// Aborts the connection.
    pub async fn break_off(self) {
        let broken = Err(io::ErrorKind::ConnectionReset.into());
        drop(self.pieces.send(broken).await);
    }

    /// Waits until the client has closed the stream.
    pub async fn closed(&self) {
        within("the client to close the stream", self.pieces.closed()).await;
    }
}

/// Reports the end of an exchange when it is dropped.
#[derive(Debug)]
pub(super) struct ExchangeGuard(watch::Sender<bool>);

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

#[derive(Debug)]
pub(super) enum ReplyBody {
    Whole(Option<Bytes>),
    Pieces {
        pieces: mpsc::Receiver<io::Result<Bytes>>,
        _over: ExchangeGuard,
    },
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces { pieces, .. } => {
                let piece = std::task::ready!(pieces.poll_recv(cx));
                Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }
}
