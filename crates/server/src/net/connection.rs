//! One connection, from its first byte to its last.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::body::Body;

/// The connection of a request, as its handler sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The address of the client, or of the proxy before us.
    pub peer: SocketAddr,
}

/// Serves one connection until it ends; after `shutdown`, until the response in progress is sent.
pub(super) async fn run<I, H, F>(
    io: I,
    info: ConnectionInfo,
    handler: Arc<H>,
    http: http1::Builder,
    shutdown: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>, ConnectionInfo) -> F,
    F: Future<Output = Response<Body>>,
{
    let peer = info.peer;
    let service = service_fn(|request| handler(request, info).map(Ok::<_, Infallible>));
    let io = TokioIo::new(Lingering::new(io));
    let mut connection = pin!(http.serve_connection(io, service));
    let served = async {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            served = connection.as_mut() => served,
        }
    };
    match AssertUnwindSafe(served).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            debug!(%peer, error = &error as &dyn Error, "connection ended early");
        }
        Err(panic) => error!(%peer, panic = panic_message(&*panic), "handler panicked"),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else {
        "(no message)"
    }
}

/// How long a closing connection still reads the data of its client.
const CLOSE_LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// A stream that, once shut down, waits for the other side to close too.
///
/// We may answer before a request has arrived whole, as when it is too large. Closing a socket
/// with unread bytes resets the connection, and the reset can overtake the answer: the client
/// would see a broken connection and never learn why.
#[derive(Debug)]
struct Lingering<I> {
    io: I,
    give_up: Option<Pin<Box<Sleep>>>,
}

impl<I> Lingering<I> {
    fn new(io: I) -> Self {
        Self { io, give_up: None }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Lingering<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, give_up } = self.get_mut();
        if give_up.is_none() {
            ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
        }
        let give_up = give_up.get_or_insert_with(|| Box::pin(sleep(CLOSE_LINGER_TIMEOUT)));
        let mut discarded = [0; 4096];
        while give_up.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut discarded);
            let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
