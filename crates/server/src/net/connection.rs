//! One connection, from its first byte to its last.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::body::Body;
use super::client_stream::ClientStream;
use super::connections::{Delivery, OpenConnection, Receipt};

/// The connection of a request, as its handler sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The address of the client, or of the proxy before us.
    pub peer: SocketAddr,
}

/// Serves one connection until it ends; after `shutdown`, until the response in progress is sent.
pub(super) async fn run<I, H, F>(
    io: ClientStream<I>,
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
    let open = Arc::clone(io.connection());
    let service = service_fn(|request| {
        let is_pipelined = open.begin_request();
        let open = Arc::clone(&open);
        let handler = Arc::clone(&handler);
        async move {
            if is_pipelined {
                // Many requests in one connection must not delay those of other connections.
                tokio::task::yield_now().await;
            }
            let response = handler(request, info).await;
            Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, open)))
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(io), service));
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
        Ok(Ok(())) => open.received(Delivery::Likely),
        // The client sent no further request in time, but it is still connected.
        Ok(Err(error)) if error.is_timeout() => open.received(Delivery::Certain),
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

/// The body of a response, which tells its connection how many bytes wait for the client.
struct TrackedBody {
    body: Body,
    connection: Arc<OpenConnection>,
    /// Set when the body has ended.
    receipt: Option<Receipt>,
}

impl TrackedBody {
    fn new(body: Body, connection: Arc<OpenConnection>) -> Self {
        Self {
            body,
            connection,
            receipt: None,
        }
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(Ok(frame)) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            self.receipt = self.body.take_receipt();
            return Poll::Ready(None);
        };
        if let Some(data) = frame.data_ref() {
            self.connection.add_unread(data.len());
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.connection.end_response(self.receipt.take());
    }
}
