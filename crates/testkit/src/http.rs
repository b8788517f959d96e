//! A client of a server's HTTP endpoint.

mod response;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plexus_mcp_protocol::Revision;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub use response::{HttpResponse, StreamEvent};

use crate::timeout::within;
use crate::transcript::Transcript;

/// Sends requests, each on its own connection, and checks every message in the responses.
///
/// Cheap to clone; clones share the transcript of the conversation.
#[derive(Debug, Clone)]
pub struct HttpClient {
    address: SocketAddr,
    path: String,
    headers: HeaderMap,
    transcript: Arc<Mutex<Transcript>>,
}

impl HttpClient {
    /// A client of the endpoint at `url`. Before a revision is negotiated, errors are checked as
    /// those of `revision`. Only `http` URLs with an IP address are supported.
    pub fn new(url: &str, revision: Revision) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = authority
            .parse()
            .unwrap_or_else(|error| panic!("no address in {url}: {error}"));
        Self {
            address,
            path: format!("/{path}"),
            headers: HeaderMap::new(),
            transcript: Arc::new(Mutex::new(Transcript::new(revision))),
        }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(
            HeaderName::from_static(name),
            header_value(value.as_bytes()),
        );
        self
    }

    /// Uses another path of the server.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A POST of a message.
    pub fn post(&self, message: &Value) -> HttpRequest {
        self.post_bytes(message.to_string())
    }

    /// A POST of any bytes, with the content type JSON.
    pub fn post_bytes(&self, body: impl Into<Bytes>) -> HttpRequest {
        let both = "application/json, text/event-stream";
        self.request(Method::POST, body.into())
            .header(ACCEPT.as_str(), both)
            .header(CONTENT_TYPE.as_str(), "application/json")
    }

    /// A GET of an event stream.
    pub fn get(&self) -> HttpRequest {
        self.request(Method::GET, Bytes::new())
            .header(ACCEPT.as_str(), "text/event-stream")
    }

    /// A DELETE.
    pub fn delete(&self) -> HttpRequest {
        self.request(Method::DELETE, Bytes::new())
    }

    /// Any request, with only the headers of this client.
    pub fn request(&self, method: Method, body: Bytes) -> HttpRequest {
        HttpRequest {
            client: self.clone(),
            method,
            headers: self.headers.clone(),
            body,
        }
    }

    fn transcript(&self) -> MutexGuard<'_, Transcript> {
        lock(&self.transcript)
    }
}

/// A request that is not sent yet.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct HttpRequest {
    client: HttpClient,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpRequest {
    /// Sets a header, and replaces earlier values.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .insert(header_name(name), header_value(value.as_ref()));
        self
    }

    /// Adds a value to a header.
    pub fn also(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .append(header_name(name), header_value(value.as_ref()));
        self
    }

    /// Removes a header.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    /// Sends the request, and waits for the head of the response.
    pub async fn send(self) -> HttpResponse {
        let Self {
            client,
            method,
            mut headers,
            body,
        } = self;
        client.transcript().sent(&body);
        let host = header_value(client.address.to_string().as_bytes());
        headers.entry(HOST).or_insert(host);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = client
            .path
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", client.path));
        *request.headers_mut() = headers;
        within("the answer of the server", exchange(client, request)).await
    }
}

/// Writes `bytes` to a new connection to `address`, closes the sending half if `close_sending`, and
/// returns everything that is received until the server closes the connection.
pub async fn raw_exchange(address: SocketAddr, bytes: &[u8], close_sending: bool) -> String {
    let received = within("the server to close the connection", async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(bytes).await?;
        if close_sending {
            stream.shutdown().await?;
        }
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await?;
        Ok::<_, std::io::Error>(received)
    });
    match received.await {
        Ok(received) => String::from_utf8_lossy(&received).into_owned(),
        Err(error) => panic!("the connection broke: {error}"),
    }
}

async fn exchange(client: HttpClient, request: Request<Full<Bytes>>) -> HttpResponse {
    let connected = TcpStream::connect(client.address).await;
    let stream = connected.unwrap_or_else(|error| panic!("cannot connect: {error}"));
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) =
        handshake.unwrap_or_else(|error| panic!("no connection: {error}"));
    // The connection stays open until the response is dropped.
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // The request on the connection reports the error, too.
        drop(connection.await);
    });
    let response = sender.send_request(request).await;
    let response = response.unwrap_or_else(|error| panic!("no answer: {error}"));
    HttpResponse::new(response, client.transcript, driver)
}

fn header_name(name: &str) -> HeaderName {
    name.parse()
        .unwrap_or_else(|error| panic!("{name:?} is no header name: {error}"))
}

fn header_value(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value)
        .unwrap_or_else(|error| panic!("{value:?} is no header value: {error}"))
}

fn lock(transcript: &Mutex<Transcript>) -> MutexGuard<'_, Transcript> {
    transcript.lock().unwrap_or_else(PoisonError::into_inner)
}
