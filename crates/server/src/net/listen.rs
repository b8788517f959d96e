//! Accepts connections, and drains them at shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::poll_fn;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::body::Body;
use super::connection::{self, ConnectionInfo};

/// A source of connections: a [`Listener`], or a fake in tests.
pub trait Accept: Send {
    /// One connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Polls for the next connection and the address of its other end.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Io, SocketAddr)>>;
}

/// TCP sockets that listen on one or more addresses.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

/// An address that cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    source: io::Error,
}

/// The limits of connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections open at a time. Further ones wait, unaccepted.
    pub connections: usize,
    /// How long a client may take to send a request head, counted from the connection or from the
    /// answer before. It is therefore also how long a connection may be idle.
    pub head_time: Duration,
    /// Size of a request head. A larger one, or one with more than 100 fields, is answered 431.
    pub head_bytes: usize,
    /// How long answers under way may take to finish at shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            head_time: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}

impl Listener {
    /// Listens on every address given, or on none of them.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, BindError> {
        let mut listener = Self {
            sockets: Vec::with_capacity(addresses.len()),
            addresses: Vec::with_capacity(addresses.len()),
        };
        for &address in addresses {
            let failed = |source| BindError { address, source };
            let socket = TcpListener::bind(address).await.map_err(failed)?;
            listener
                .addresses
                .push(socket.local_addr().map_err(failed)?);
            listener.sockets.push(socket);
        }
        Ok(listener)
    }

    /// The addresses listened on, with the ports the system chose for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Accept for Listener {
    type Io = TcpStream;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        for index in 0..self.sockets.len() {
            let Some(socket) = self.sockets.get(index) else {
                break;
            };
            let Poll::Ready(accepted) = socket.poll_accept(cx) else {
                continue;
            };
            // The next turn starts behind this socket, so that a busy one cannot starve the rest.
            self.sockets.rotate_left(index + 1);
            let (stream, peer) = accepted?;
            if let Err(error) = stream.set_nodelay(true) {
                debug!(%peer, %error, "cannot turn off Nagle's algorithm");
            }
            return Poll::Ready(Ok((stream, peer)));
        }
        Poll::Pending
    }
}

/// Serves connections until `shutdown`, then lets the answers under way finish.
///
/// At shutdown no connection is accepted any more, idle ones are closed, and those at work close
/// after their answer. Connections still open after [`Limits::drain`] are dropped. A handler that panics
/// ends its own connection only. Dropping this future drops all connections at once.
pub async fn serve<A, H, F>(
    mut acceptor: A,
    handler: H,
    limits: &Limits,
    shutdown: &CancellationToken,
) where
    A: Accept,
    H: Fn(Request<Incoming>, ConnectionInfo) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let handler = Arc::new(handler);
    let http = http(limits);
    let slots = Arc::new(Semaphore::new(
        limits.connections.min(Semaphore::MAX_PERMITS),
    ));
    let connections = TaskTracker::new();
    // Cancelled when this future is dropped, or when the drain time is over.
    let abort = CancellationToken::new();
    let _abort_on_drop = abort.clone().drop_guard();

    let accepting = async {
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            let (io, info) = next_connection(&mut acceptor).await;
            let (handler, http) = (Arc::clone(&handler), http.clone());
            let connection = connection::run(io, info, handler, http, shutdown.clone());
            let abort = abort.clone();
            connections.spawn(async move {
                abort.run_until_cancelled_owned(connection).await;
                drop(slot);
            });
        }
    };
    shutdown.run_until_cancelled(accepting).await;
    drop(acceptor);

    connections.close();
    if timeout(limits.drain, connections.wait()).await.is_err() {
        warn!(
            open = connections.len(),
            "closing connections that did not finish in time"
        );
        abort.cancel();
        connections.wait().await;
    }
}

/// The most bytes of one read. Larger reads have left the CPU cache when the body is assembled.
const MAX_READ_BUFFER_BYTES: usize = 64 * 1024;

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        .max_buf_size(MAX_READ_BUFFER_BYTES.max(limits.head_bytes))
        // A client that closes its side is gone: that is the cancellation of its request.
        .half_close(false);
    http
}

const ACCEPT_BACKOFF_MIN: Duration = Duration::from_millis(10);
const ACCEPT_BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The next connection, however often accepting fails before it.
async fn next_connection<A: Accept>(acceptor: &mut A) -> (A::Io, ConnectionInfo) {
    let mut pause = ACCEPT_BACKOFF_MIN;
    loop {
        match poll_fn(|cx| acceptor.poll_accept(cx)).await {
            Ok((io, peer)) => return (io, ConnectionInfo { peer }),
            Err(error) if concerns_one_connection(&error) => {
                debug!(%error, "a connection ended before it was accepted");
            }
            Err(error) => {
                // Most likely out of descriptors: trying again at once would only burn the
                // processor that could be closing some.
                warn!(%error, ?pause, "cannot accept connections");
                sleep(pause).await;
                pause = (pause * 2).min(ACCEPT_BACKOFF_MAX);
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
