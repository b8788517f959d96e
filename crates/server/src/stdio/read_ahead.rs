//! An input that is read before it is served.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::pipe::{self, StdInput};

/// How much is read ahead. A client that sends more before it is served is still there.
const READ_AHEAD_MAX_BYTES: usize = 64 * 1024;

/// An input whose end can be noticed before it is served. The bytes read until then are kept, and are
/// read first.
#[derive(Debug)]
pub struct ReadAhead<R> {
    input: R,
    kept: BytesMut,
}

impl ReadAhead<StdInput> {
    /// Standard input. Call it once, within a tokio runtime.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn stdin() -> io::Result<Self> {
        Ok(Self::new(pipe::stdin()?))
    }
}

impl<R: AsyncRead + Unpin> ReadAhead<R> {
    /// Reads `input` ahead.
    pub fn new(input: R) -> Self {
        Self {
            input,
            kept: BytesMut::new(),
        }
    }

    /// Waits until the input ends. Never completes if more than 64 KiB come before that.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// Reading failed.
    pub async fn ended(&mut self) -> io::Result<()> {
        while self.kept.len() < READ_AHEAD_MAX_BYTES {
            if self.input.read_buf(&mut self.kept).await? == 0 {
                return Ok(());
            }
        }
        std::future::pending().await
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadAhead<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.kept.is_empty() {
            return Pin::new(&mut this.input).poll_read(cx, buffer);
        }
        let length = this.kept.len().min(buffer.remaining());
        let taken = this.kept.split_to(length);
        buffer.put_slice(taken.chunk());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn what_was_read_ahead_is_read_first() {
        let (input, mut client) = tokio::io::duplex(16);
        let mut input = ReadAhead::new(input);
        client.write_all(b"one ").await.unwrap();
        assert!(input.ended().now_or_never().is_none(), "it has not ended");
        client.write_all(b"two").await.unwrap();
        drop(client);
        input.ended().await.unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one two");
    }

    #[tokio::test]
    async fn reading_ahead_is_bounded() {
        let mut input = ReadAhead::new(tokio::io::repeat(b'x'));
        assert!(input.ended().now_or_never().is_none());
        assert!(input.kept.len() < 2 * READ_AHEAD_MAX_BYTES);
    }
}
