//! Standard input and output as polled byte streams.
//!
//! A client that starts us gives us pipes (most) or UNIX sockets (Node). Both are registered with
//! the reactor, so a message costs no hop to a thread and a read that waits for input does not
//! hold up the end of the process. Terminals, files and devices cannot be polled everywhere and
//! go through tokio's own standard streams, which use a blocking thread.
//!
//! Dropping a [`StdInput`] or a [`StdOutput`] does not close the descriptor that the process was
//! started with: the peer sees the end of file when the process ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(unix)]
mod unix;

/// Standard input.
#[derive(Debug)]
#[non_exhaustive]
pub enum StdInput {
    /// A pipe, polled.
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Receiver),
    /// A socket, polled.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Anything else, read on a blocking thread.
    Other(tokio::io::Stdin),
}

/// Standard output.
///
/// After the reader closes its end, writes fail with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
#[non_exhaustive]
pub enum StdOutput {
    /// A pipe, polled.
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Sender),
    /// A socket, polled.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Anything else, written on a blocking thread.
    Other(tokio::io::Stdout),
}

/// Opens standard input for polling. Call it once, within a tokio runtime.
pub fn stdin() -> io::Result<StdInput> {
    #[cfg(unix)]
    if let Some(polled) = unix::input(&io::stdin())? {
        return Ok(polled);
    }
    Ok(StdInput::Other(tokio::io::stdin()))
}

/// Opens standard output for polling. Call it once, within a tokio runtime.
pub fn stdout() -> io::Result<StdOutput> {
    #[cfg(unix)]
    if let Some(polled) = unix::output(&io::stdout())? {
        return Ok(polled);
    }
    Ok(StdOutput::Other(tokio::io::stdout()))
}

impl AsyncRead for StdInput {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            #[cfg(unix)]
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            #[cfg(unix)]
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Other(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl StdOutput {
    fn stream(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(match self {
            #[cfg(unix)]
            Self::Pipe(pipe) => pipe,
            #[cfg(unix)]
            Self::Socket(socket) => socket,
            Self::Other(stdout) => stdout,
        })
    }
}

impl AsyncWrite for StdOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_shutdown(cx)
    }
}
