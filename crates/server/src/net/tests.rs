//! The listener as a client sees it: raw bytes over sockets, or over memory where time matters.

mod limits;
mod shutdown;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

const BODY_LIMITS: BodyLimits = BodyLimits {
    bytes: 1000,
    idle: Duration::from_secs(2),
    total: Duration::from_secs(6),
};

/// The size of the body of `/large`: more than fits into a connection in memory.
const LARGE_BODY_BYTES: usize = 300_000;

/// State that the handler shares with the tests.
#[derive(Debug, Default)]
struct Stage {
    requests: AtomicUsize,
    /// A request to `/wait` has arrived.
    waiting: Notify,
    /// Lets `/wait` answer.
    proceed: Notify,
    /// `/wait` or `/events` was dropped, answered or not.
    dropped: CancellationToken,
}

impl Stage {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let path = request.uri().path().to_owned();
        let body = match read_body(request.into_body(), BODY_LIMITS).await {
            Ok(body) => body,
            Err(error) => return error.to_response(),
        };
        match path.as_str() {
            "/echo" => respond::json(StatusCode::OK, body),
            "/large" => {
                let large = Bytes::from(vec![b'x'; LARGE_BODY_BYTES]);
                respond::json(StatusCode::OK, large)
            }
            "/panic" => panic!("as the test asked"),
            "/wait" => {
                let _guard = self.dropped.clone().drop_guard();
                self.waiting.notify_one();
                self.proceed.notified().await;
                respond::text(StatusCode::OK, "waited")
            }
            "/events" => {
                let guard = self.dropped.clone().drop_guard();
                let events = stream::unfold(Some(guard), |guard| async move {
                    guard.as_ref()?;
                    std::future::pending::<Infallible>().await;
                    Some((Bytes::new(), guard))
                });
                respond::sse(Body::events(events, KEEP_ALIVE_INTERVAL))
            }
            _ => respond::empty(StatusCode::NOT_FOUND),
        }
    }
}

struct Server {
    stage: Arc<Stage>,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    fn start<A: Accept + 'static>(acceptor: A, limits: Limits) -> Self {
        let stage = Arc::new(Stage::default());
        let shutdown = CancellationToken::new();
        let handler = {
            let stage = Arc::clone(&stage);
            move |request, _| Arc::clone(&stage).handle(request)
        };
        let serving = {
            let shutdown = shutdown.clone();
            async move { serve(acceptor, handler, &limits, &shutdown).await }
        };
        Self {
            stage,
            shutdown,
            serving: TaskTracker::new().spawn(serving),
        }
    }

    async fn tcp(limits: Limits) -> (Self, SocketAddr) {
        let listener = Listener::bind(&["127.0.0.1:0".parse().unwrap()])
            .await
            .unwrap();
        let address = listener.addresses()[0];
        (Self::start(listener, limits), address)
    }

    fn in_memory(limits: Limits) -> (Self, mpsc::Sender<io::Result<DuplexStream>>) {
        let (connections, incoming) = mpsc::channel(8);
        (Self::start(Memory(incoming), limits), connections)
    }
}

/// Connections, and failures to accept one, as a test sends them.
struct Memory(mpsc::Receiver<io::Result<DuplexStream>>);

impl Accept for Memory {
    type Io = DuplexStream;

    fn poll_accept(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(DuplexStream, SocketAddr)>> {
        match ready!(self.0.poll_recv(cx)) {
            Some(accepted) => Poll::Ready(accepted.map(|io| (io, ([127, 0, 0, 1], 1).into()))),
            None => Poll::Pending,
        }
    }
}

async fn connect(connections: &mpsc::Sender<io::Result<DuplexStream>>) -> DuplexStream {
    let (ours, theirs) = duplex(64 * 1024);
    connections.send(Ok(theirs)).await.unwrap();
    ours
}

/// Fails a test that would hang. Never waited out when all is well.
async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_mins(1), future)
        .await
        .expect("this should not take long")
}

/// Everything the server still sends before it closes.
async fn read_to_end(connection: &mut (impl AsyncRead + Unpin)) -> String {
    let mut received = Vec::new();
    soon(connection.read_to_end(&mut received)).await.unwrap();
    String::from_utf8(received).unwrap()
}

/// One answer with a content-length.
async fn read_answer(connection: &mut (impl AsyncRead + Unpin)) -> String {
    let mut received = Vec::new();
    let mut missing = usize::MAX;
    while missing > 0 {
        received.push(soon(connection.read_u8()).await.unwrap());
        missing = missing.saturating_sub(1);
        if received.ends_with(b"\r\n\r\n") && missing > usize::MAX / 2 {
            let head = std::str::from_utf8(&received).unwrap();
            let length = head.split("content-length: ").nth(1).unwrap();
            missing = length.split("\r\n").next().unwrap().parse().unwrap();
        }
    }
    String::from_utf8(received).unwrap()
}

async fn send(connection: &mut (impl AsyncWrite + Unpin), bytes: &str) {
    soon(connection.write_all(bytes.as_bytes())).await.unwrap();
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Checks that the server still answers.
async fn echo(connection: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    send(connection, &post("/echo", "{\"ok\":1}")).await;
    let answer = read_answer(connection).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"ok\":1}"), "{answer}");
}

#[tokio::test]
async fn a_connection_carries_many_requests() {
    let (_server, address) = Server::tcp(Limits::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        echo(&mut client).await;
    }
}

#[tokio::test]
async fn several_addresses_are_one_server() {
    let anywhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&[anywhere, anywhere]).await.unwrap();
    let addresses = listener.addresses().to_vec();
    let _server = Server::start(listener, Limits::default());
    for address in addresses.iter().chain(&addresses) {
        echo(&mut TcpStream::connect(address).await.unwrap()).await;
    }
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = Listener::bind(&["127.0.0.1:0".parse().unwrap()])
        .await
        .unwrap();
    let error = Listener::bind(first.addresses()).await.unwrap_err();
    let taken = first.addresses()[0];
    assert_eq!(error.address, taken);
    assert_eq!(error.to_string(), format!("cannot listen on {taken}"));
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_only() {
    let (_server, address) = Server::tcp(Limits::default()).await;
    let mut bystander = TcpStream::connect(address).await.unwrap();
    echo(&mut bystander).await;

    let mut client = TcpStream::connect(address).await.unwrap();
    send(&mut client, &post("/panic", "")).await;
    assert_eq!(read_to_end(&mut client).await, "");

    echo(&mut bystander).await;
    echo(&mut TcpStream::connect(address).await.unwrap()).await;
}

#[tokio::test]
async fn control_characters_in_a_header_do_not_affect_other_clients() {
    let (server, address) = Server::tcp(Limits::default()).await;
    let mut bystander = TcpStream::connect(address).await.unwrap();
    echo(&mut bystander).await;
    let bad = [
        "X-A: a\0b",
        "X-A: a\x01b",
        "X\x7f: a",
        "X A: b",
        "X-A: a\rX-B: b",
    ];
    for line in bad {
        let mut client = TcpStream::connect(address).await.unwrap();
        let head = format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n");
        send(&mut client, &head).await;
        let answer = read_to_end(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line:?}: {answer}");
        echo(&mut bystander).await;
    }
    let answered = server.stage.requests.load(Ordering::Relaxed);
    assert_eq!(answered, 1 + bad.len(), "a malformed request was handled");
}

/// HTTP26-15: a client that closes its side, fully or half, has cancelled its request.
#[tokio::test]
async fn a_call_ends_when_its_client_goes() {
    for half in [true, false] {
        let (server, address) = Server::tcp(Limits::default()).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        send(&mut client, &post("/wait", "")).await;
        soon(server.stage.waiting.notified()).await;
        assert!(!server.stage.dropped.is_cancelled());
        let kept = if half {
            client.shutdown().await.unwrap();
            Some(client)
        } else {
            drop(client);
            None
        };
        soon(server.stage.dropped.cancelled()).await;
        drop(kept);
    }
}

/// HTTP26-15, for a response that has begun.
#[tokio::test]
async fn a_stream_ends_when_its_client_goes() {
    let (server, address) = Server::tcp(Limits::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    send(&mut client, &post("/events", "")).await;
    let mut head = [0; 15];
    soon(client.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    assert!(!server.stage.dropped.is_cancelled());
    drop(client);
    soon(server.stage.dropped.cancelled()).await;
}

/// HTTP26-12, HTTP26-13: the head goes out at once, then comments.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    let (_server, connections) = Server::in_memory(Limits::default());
    let mut client = connect(&connections).await;
    send(&mut client, &post("/events", "")).await;
    let start = Instant::now();
    let mut received = String::new();
    while received.matches(": keep-alive\n\n").count() < 4 {
        let mut buffer = [0; 1024];
        let length = client.read(&mut buffer).await.unwrap();
        if received.is_empty() {
            assert_eq!(start.elapsed(), Duration::ZERO);
        }
        received.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    assert_eq!(start.elapsed(), KEEP_ALIVE_INTERVAL * 4);
    assert!(received.contains("x-accel-buffering: no\r\n"), "{received}");
}
