//! One connection to the server, which sends its requests one at a time.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use plexus_mcp_wire::sse;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The newest revision whose clients keep the connection of a running call open. Clients of later
/// handshake revisions poll.
pub(crate) const VERSION: &str = "2025-06-18";

const SESSION: &str = "mcp-session-id";

pub(crate) struct Connection {
    server: SocketAddr,
    path: String,
    sender: SendRequest<Full<Bytes>>,
    _driver: JoinSet<()>,
}

/// An open event stream. Dropping it closes the stream.
pub(crate) struct Stream {
    _events: Incoming,
    _connection: Connection,
}

pub(crate) struct Answer {
    /// The response message; `null` if the body is empty.
    pub(crate) message: Value,
    /// The session id in the response, if it opened a session.
    pub(crate) session: Option<String>,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr, path: String) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The sender of a request reports the error of the connection.
            drop(connection.await);
        });
        Ok(Self {
            server,
            path,
            sender,
            _driver: driver,
        })
    }

    /// Sends a message, and returns the response: the JSON body, or the last message of a stream.
    pub(crate) async fn post(
        &mut self,
        session: Option<&str>,
        message: &Value,
    ) -> anyhow::Result<Answer> {
        let body = Full::new(Bytes::from(message.to_string()));
        let response = self.send(Method::POST, session, body).await?;
        let opened = response.headers().get(SESSION);
        let opened = opened.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(
            status.is_success(),
            "refused with {status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(Answer {
            message: last_message(&body)?,
            session: opened,
        })
    }

    /// Opens the event stream of a session.
    pub(crate) async fn listen(mut self, session: &str) -> anyhow::Result<Stream> {
        let nothing = Full::new(Bytes::new());
        let response = self.send(Method::GET, Some(session), nothing).await?;
        ensure!(
            response.status().is_success(),
            "no stream: {}",
            response.status()
        );
        Ok(Stream {
            _events: response.into_body(),
            _connection: self,
        })
    }

    async fn send(
        &mut self,
        method: Method,
        session: Option<&str>,
        body: Full<Bytes>,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header(HOST, self.server.to_string())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", VERSION);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(body)?).await?)
    }
}

/// The message in a JSON body, or the last message in the body of an event stream.
fn last_message(body: &[u8]) -> anyhow::Result<Value> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    if body.starts_with(b"{") {
        return Ok(serde_json::from_slice(body)?);
    }
    let mut decoder = sse::Decoder::new(body.len());
    decoder.feed(body);
    let mut last = Value::Null;
    while let Some(event) = decoder.next() {
        last = serde_json::from_slice(&event?.data)?;
    }
    Ok(last)
}
