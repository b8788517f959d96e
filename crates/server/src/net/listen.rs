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
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::body::Body;
use super::client_stream::ClientStream;
use super::connection::{self, ConnectionInfo};
use super::connections::ConnectionTable;
use super::descriptors;

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
    /// The most open connections, if the limit on open file descriptors allows so many. A further one
    /// takes the place of a connection that is idle or whose client does not read; if there is none,
    /// it waits until one is closed.
    pub connections: usize,
    /// How long a client may leave a response unread. The connection is then closed.
    pub write_stall: Duration,
    /// The most bytes of responses that wait for their clients, on all connections together. Beyond
    /// that, the connections whose clients have not read for the longest time are closed.
    pub unread_bytes: usize,
    /// How long a client may take to send a request head, counted from the connection or from the
    /// answer before. It is therefore also how long a connection may be idle.
    pub head_time: Duration,
    /// Size of a request head. A larger one, or one with more than 100 fields, is answered 431.
    pub head_bytes: usize,
    /// How long responses in progress may take to finish at shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            write_stall: Duration::from_secs(30),
            unread_bytes: 64 * 1024 * 1024,
            head_time: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// The same limits, with as many connections as the limit on open file descriptors allows.
    pub(crate) fn within_descriptors(&self) -> Self {
        Self {
            connections: descriptors::connections_within_limit(self.connections),
            ..self.clone()
        }
    }
}

impl Listener {
    /// Listens on every address given, or on none of them.
    #[expect(
        clippy::unused_async,
        reason = "it needs a runtime, and callers need not know that it does not wait"
    )]
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, BindError> {
        let mut listener = Self {
            sockets: Vec::with_capacity(addresses.len()),
            addresses: Vec::with_capacity(addresses.len()),
        };
        for &address in addresses {
            let failed = |source| BindError { address, source };
            let socket = listen(address).map_err(failed)?;
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

/// How many connections may wait to be accepted, if the system allows so many. With the default of the
/// standard library, 128, the system drops connections of a burst, and their clients try again after
/// a second.
const LISTEN_BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // On Windows, this would let another program take the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
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

/// Serves connections until `shutdown`.
///
/// Graceful shutdown: stops accepting, closes idle connections, and closes each busy one after its
/// current response. Connections still open after [`Limits::drain`] are dropped. A handler that panics
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
    let table = ConnectionTable::new(limits);
    let write_stall = limits.write_stall;
    let connections = TaskTracker::new();
    // Cancelled when this future is dropped, or when the drain time is over.
    let abort = CancellationToken::new();
    let _abort_on_drop = abort.clone().drop_guard();

    let accepting = async {
        loop {
            let (io, info) = next_connection(&mut acceptor).await;
            let guard = table.add().await;
            let io = ClientStream::new(io, write_stall, Arc::clone(guard.connection()));
            let (handler, http) = (Arc::clone(&handler), http.clone());
            let connection = connection::run(io, info, handler, http, shutdown.clone());
            let (abort, evicted) = (abort.clone(), guard.evicted());
            connections.spawn(async move {
                let connection = evicted.run_until_cancelled_owned(connection);
                abort.run_until_cancelled_owned(connection).await;
                drop(guard);
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

/// The most bytes of one read. Larger reads have left the CPU cache when the body is assembled: with
/// the default of hyper, 400 KiB, a call with 900 KB of arguments takes 0.51 ms instead of 0.36.
const MAX_READ_BUFFER_BYTES: usize = 64 * 1024;

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        .max_buf_size(MAX_READ_BUFFER_BYTES.max(limits.head_bytes))
        // A client that closes its side of the connection cancels its request.
        .half_close(false);
    http
}

const ACCEPT_BACKOFF_MIN: Duration = Duration::from_millis(10);
const ACCEPT_BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The next connection. After a failure to accept, it tries again.
async fn next_connection<A: Accept>(acceptor: &mut A) -> (A::Io, ConnectionInfo) {
    let mut pause = ACCEPT_BACKOFF_MIN;
    loop {
        match poll_fn(|cx| acceptor.poll_accept(cx)).await {
            Ok((io, peer)) => return (io, ConnectionInfo { peer }),
            Err(error) if concerns_one_connection(&error) => {
                debug!(%error, "a connection ended before it was accepted");
            }
            Err(error) => {
                // Most likely there are no free descriptors, so an immediate retry would busy-loop.
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
