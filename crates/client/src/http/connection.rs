//! One connection, driven by whoever uses it: a request takes no turn through another task.
//!
//! It speaks HTTP/1.1 itself, which for one request after the other is little: the head and the body
//! go out in one piece where they are short, and what comes back is looked at where it was read.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::connect::Link;
use super::framing::{self, Framing, Misframed};
use super::head::{BadHead, Head};

/// How much is read at once: at first, and of a body that is known to be longer. A longer body is put
/// together in a buffer of its own size.
const READ: usize = 8 * 1024;
const READ_MORE: usize = 32 * 1024;
/// How little room there may be to read into.
const LITTLE: usize = 1024;

type Stream = TokioIo<MaybeHttpsStream<Link>>;

/// An open connection. Dropping it closes it.
pub(super) struct Connection {
    stream: Stream,
    unread: BytesMut,
    request: Request,
    framing: Framing,
    /// Others may use it after the answer.
    is_kept: bool,
    /// A proxy reads the requests on it.
    pub(super) is_proxied: bool,
}

/// What of a request is still to be written.
#[derive(Default)]
struct Request {
    head: Bytes,
    body: Bytes,
    /// Nothing was written yet.
    is_untouched: bool,
    /// What was written may still lie between us and the network.
    is_unflushed: bool,
    /// The server does not take the rest of it.
    has_failed: bool,
}

/// Why there is no answer, or no more of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Breach {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Head(#[from] BadHead),
    #[error(transparent)]
    Misframed(#[from] Misframed),
    #[error("the server closed the connection without an answer")]
    Unanswered,
}

/// A request that has no answer.
pub(super) struct Refused {
    pub(super) breach: Breach,
    /// Nothing of it was sent.
    pub(super) is_unsent: bool,
}

impl Connection {
    /// It is boxed, as it is large and changes hands often.
    pub(super) fn new(stream: MaybeHttpsStream<Link>) -> Box<Self> {
        Box::new(Self {
            is_proxied: stream.connected().is_proxied(),
            stream: TokioIo::new(stream),
            unread: BytesMut::new(),
            request: Request::default(),
            framing: Framing::Done,
            is_kept: true,
        })
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(&mut self, head: Bytes, body: Bytes) -> Result<Head, Refused> {
        // What a server says before it was asked anything is no answer.
        let is_closed = poll_fn(|cx| Poll::Ready(self.poll_closed(cx).is_ready())).await;
        if is_closed {
            return Err(Refused {
                breach: Breach::Unanswered,
                is_unsent: true,
            });
        }
        self.request = Request {
            head,
            body,
            is_untouched: true,
            is_unflushed: true,
            has_failed: false,
        };
        let answer = poll_fn(|cx| self.poll_head(cx)).await;
        answer.map_err(|breach| Refused {
            breach,
            is_unsent: self.request.is_untouched,
        })
    }

    /// The next part of an answer's body; none after the end.
    pub(super) fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Breach>> {
        loop {
            if let Some(part) = self.framing.take(&mut self.unread)? {
                return Poll::Ready(Ok(Some(part)));
            }
            if self.is_at_the_end() {
                return Poll::Ready(Ok(None));
            }
            if ready!(self.poll_read(cx))? == 0 {
                self.is_kept = false;
                self.framing.close()?;
            }
        }
    }

    /// Whether the answer has been read.
    pub(super) fn is_at_the_end(&self) -> bool {
        self.framing == Framing::Done
    }

    /// How long the rest of the answer is at least.
    pub(super) fn at_least(&self) -> u64 {
        self.framing.at_least()
    }

    /// Whether it can take another request.
    pub(super) fn is_ready(&self) -> bool {
        let is_done = self.is_at_the_end() && self.request.is_written();
        is_done && self.is_kept && self.unread.is_empty()
    }

    /// Looks after a connection that is in nobody's use, until it closes.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Whatever comes now is not wanted, and the end of it.
        self.poll_read(cx).map(|_end| ())
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Breach>> {
        loop {
            if let Some(head) = Head::take(&mut self.unread)? {
                self.framing = Framing::of(&head)?;
                self.is_kept = framing::is_kept(&head);
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_read(cx))? == 0 {
                return Poll::Ready(Err(Breach::Unanswered));
            }
        }
    }

    /// Reads what there is. A server may answer before it has the whole request, so that is gone on
    /// with at the same time.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let writing = self.request.poll_write(&mut self.stream, cx);
        if self.unread.capacity() - self.unread.len() < LITTLE {
            let expected = usize::try_from(self.framing.at_least()).unwrap_or(usize::MAX);
            self.unread.reserve(expected.clamp(READ, READ_MORE));
        }
        let reading = pin!(self.stream.read_buf(&mut self.unread)).poll(cx);
        match (writing, reading) {
            // Whoever does not listen to the end may have answered nevertheless.
            (Poll::Ready(Err(error)), Poll::Pending) => Poll::Ready(Err(error)),
            (_, reading) => reading,
        }
    }
}

impl Request {
    fn is_written(&self) -> bool {
        self.head.is_empty() && self.body.is_empty() && !self.is_unflushed
    }

    /// Writes what is left. That it cannot be written is told once.
    fn poll_write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_written() || self.has_failed {
            return Poll::Ready(Ok(()));
        }
        let written = ready!(self.poll_write_all(stream, cx));
        self.has_failed = written.is_err();
        Poll::Ready(written)
    }

    fn poll_write_all(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(stream);
        while !(self.head.is_empty() && self.body.is_empty()) {
            let written = if self.body.is_empty() {
                ready!(stream.as_mut().poll_write(cx, &self.head))?
            } else {
                let both = [IoSlice::new(&self.head), IoSlice::new(&self.body)];
                ready!(stream.as_mut().poll_write_vectored(cx, &both))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.is_untouched = false;
            let of_head = written.min(self.head.len());
            self.head.advance(of_head);
            self.body.advance(written - of_head);
        }
        if self.is_unflushed {
            ready!(stream.poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
