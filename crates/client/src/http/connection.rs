//! One connection, driven by whoever uses it: a request takes no turn through another task.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::Connection as _;

use super::connect::Link;
use crate::lock::lock;

/// How much is read at once. A longer body is put together in a buffer of its own size.
const READ: usize = 32 * 1024;

/// What a request is sent as.
pub(super) type Outgoing = Request<Full<Bytes>>;

type Driving = http1::Connection<MaybeHttpsStream<Link>, Full<Bytes>>;

/// An open connection. Dropping it closes it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// None after the end.
    driving: Option<Box<Driving>>,
    bell: Arc<Bell>,
    /// The bell's.
    waker: Waker,
    /// A proxy reads the requests on it.
    pub(super) is_proxied: bool,
}

impl Connection {
    pub(super) async fn new(stream: MaybeHttpsStream<Link>) -> hyper::Result<Self> {
        let is_proxied = stream.connected().is_proxied();
        let (sender, driving) = http1::Builder::new()
            .max_buf_size(READ)
            .handshake(stream)
            .await?;
        let bell = Arc::<Bell>::default();
        Ok(Self {
            sender,
            driving: Some(Box::new(driving)),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            is_proxied,
        })
    }

    /// Sends a request and waits for the head of the answer. The error has the request if nothing of
    /// it was sent.
    pub(super) async fn send(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            self.poll_with(cx, |connection, cx| {
                connection.drive(cx);
                answer.as_mut().poll(cx)
            })
        })
        .await
    }

    /// The next part of an answer's body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        self.poll_with(cx, |connection, cx| {
            let mut body = Pin::new(&mut *body);
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(frame);
            }
            connection.drive(cx);
            body.poll_frame(cx)
        })
    }

    /// Whether it can take another request, now that the answer to the last one is read.
    pub(super) fn is_ready(&mut self) -> bool {
        let waker = self.waker.clone();
        self.drive(&mut Context::from_waker(&waker));
        self.driving.is_some() && self.sender.is_ready()
    }

    /// Looks after a connection that is in nobody's use, until it closes.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_with(cx, |connection, cx| {
            connection.drive(cx);
            match connection.driving {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            }
        })
    }

    /// Wakes `waker`, too, when something is to be done for it.
    pub(super) fn watch(&self, waker: &Waker) {
        if !self.bell.is_heard_by(waker) {
            waker.wake_by_ref();
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        let ended = self
            .driving
            .as_mut()
            .map(|driving| Pin::new(driving).poll(cx));
        if let Some(Poll::Ready(ended)) = ended {
            // Who waits for an answer is told by other means.
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            self.driving = None;
        }
    }

    /// Polls until nothing more can be done. The parts of a connection wake one another all the time,
    /// and whoever polls them all need not be woken for that.
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let waker = self.waker.clone();
        let mut parts = Context::from_waker(&waker);
        loop {
            self.bell.quieten();
            let polled = poll(self, &mut parts);
            if polled.is_ready() || self.bell.is_heard_by(cx.waker()) {
                return polled;
            }
        }
    }
}

/// What the parts of a connection wake.
#[derive(Default)]
struct Bell {
    has_rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Bell {
    /// Forgets what was, and lets nobody listen.
    fn quieten(&self) {
        lock(&self.listener).take();
        self.has_rung.store(false, Ordering::SeqCst);
    }

    /// Lets `waker` listen. Not if it has rung already.
    fn is_heard_by(&self, waker: &Waker) -> bool {
        *lock(&self.listener) = Some(waker.clone());
        !self.has_rung.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::SeqCst);
        let listener = lock(&self.listener).take();
        if let Some(listener) = listener {
            listener.wake();
        }
    }
}
