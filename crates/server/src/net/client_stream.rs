//! The byte stream of one client, with a time limit for writes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connections::OpenConnection;

/// How long a closing connection still reads the data of its client.
const CLOSE_LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// The byte stream of one client.
///
/// A write fails if the client reads nothing for a time.
///
/// Once shut down, the stream waits for the other side to close too. We may answer before a request
/// has arrived whole, as when it is too large. Closing a socket with unread bytes resets the
/// connection, and the reset can overtake the answer: the client would see a broken connection and
/// never learn why.
#[derive(Debug)]
pub(super) struct ClientStream<I> {
    io: I,
    connection: Arc<OpenConnection>,
    write_stall: Duration,
    /// When the present write fails. It is reused for later writes.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// Whether the client has not taken the present write.
    is_stalled: bool,
    /// When a stream that was shut down no longer waits.
    linger_timer: Option<Pin<Box<Sleep>>>,
}

impl<I> ClientStream<I> {
    pub(super) fn new(io: I, write_stall: Duration, connection: Arc<OpenConnection>) -> Self {
        Self {
            io,
            connection,
            write_stall,
            stall_timer: None,
            is_stalled: false,
            linger_timer: None,
        }
    }

    pub(super) fn connection(&self) -> &Arc<OpenConnection> {
        &self.connection
    }

    /// The result of a write, which fails if none was possible for the time limit.
    fn limited(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_stalled = false;
            self.connection.progressed();
            return written;
        }
        let timer = self
            .stall_timer
            .get_or_insert_with(|| Box::pin(sleep(self.write_stall)));
        if !self.is_stalled {
            self.is_stalled = true;
            timer.as_mut().reset(Instant::now() + self.write_stall);
        }
        ready!(timer.as_mut().poll(cx));
        let text = "the client does not read its response";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ClientStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection.arrived();
        }
        read
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.limited(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.limited(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// hyper flushes when it has written everything.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.io).poll_flush(cx));
        self.connection.clear_unread();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self {
            io, linger_timer, ..
        } = self.get_mut();
        if linger_timer.is_none() {
            ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
        }
        let timer = linger_timer.get_or_insert_with(|| Box::pin(sleep(CLOSE_LINGER_TIMEOUT)));
        let mut discarded = [0; 4096];
        while timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut discarded);
            ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        // The client has not closed its side: it is unknown whether it has received the response.
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
