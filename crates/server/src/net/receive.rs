//! Taking in a request body, within limits.

use std::error::Error as StdError;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

use super::body::Body;
use super::respond;

/// The limits of a request body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Size of the body.
    pub bytes: usize,
    /// Time between two pieces of it.
    pub idle: Duration,
    /// Time for all of it.
    pub total: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            bytes: 1024 * 1024,
            idle: Duration::from_secs(15),
            total: Duration::from_mins(1),
        }
    }
}

/// Why a request body could not be taken in.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is larger than the limit.
    #[error("the request body is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It did not arrive in time.
    #[error("the request body did not arrive in time")]
    TimedOut,
    /// It is not valid HTTP, or ended early.
    #[error("the request body ended early or is malformed")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
}

impl ReadError {
    /// The HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The answer in plain text. The connection closes behind it, for the rest of the body is
    /// still to come.
    pub fn to_response(&self) -> Response<Body> {
        respond::closing(respond::text(self.status(), &self.to_string()))
    }
}

/// Reads a whole body into one buffer.
///
/// A body that announces more than the limit is refused before any of it is read. Dropping this
/// future leaves the rest unread, and the connection closes after the answer.
pub async fn read_body<B>(body: B, limits: BodyLimits) -> Result<Bytes, ReadError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let limit = limits.bytes;
    let fits = |bytes: u64| usize::try_from(bytes).is_ok_and(|bytes| bytes <= limit);
    if !fits(body.size_hint().lower()) {
        return Err(ReadError::TooLarge { limit });
    }
    let deadline = Instant::now() + limits.total;
    let mut body = pin!(body);
    let mut received = BytesMut::new();
    loop {
        // A body whose frames are always ready never reaches the timeout below.
        let now = Instant::now();
        if now >= deadline {
            return Err(ReadError::TimedOut);
        }
        let frame = timeout_at(deadline.min(now + limits.idle), body.frame())
            .await
            .map_err(|_elapsed| ReadError::TimedOut)?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|error| ReadError::Broken(error.into()))?;
        // Trailers carry nothing we read.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > limit.saturating_sub(received.len()) {
            return Err(ReadError::TooLarge { limit });
        }
        received.extend_from_slice(&data);
    }
    Ok(received.freeze())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    const LIMITS: BodyLimits = BodyLimits {
        bytes: 10,
        idle: Duration::from_secs(1),
        total: Duration::from_secs(5),
    };

    fn pieces<const N: usize>(
        pieces: [&'static str; N],
    ) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter(
            pieces.map(|piece| Ok(Frame::data(Bytes::from(piece)))),
        ))
    }

    #[tokio::test]
    async fn several_pieces_are_joined() {
        let read = read_body(Full::new(Bytes::from("0123456789")), LIMITS).await;
        assert_eq!(read.unwrap(), "0123456789");
        let read = read_body(pieces(["01", "", "234", "56789"]), LIMITS).await;
        assert_eq!(read.unwrap(), "0123456789");
        let read = read_body(pieces([]), LIMITS).await;
        assert_eq!(read.unwrap(), "");
    }

    #[tokio::test]
    async fn too_many_bytes_are_refused() {
        let announced = read_body(Full::new(Bytes::from("0123456789A")), LIMITS).await;
        let gathered = read_body(pieces(["01234", "56789", "A"]), LIMITS).await;
        for refused in [announced, gathered] {
            let error = refused.unwrap_err();
            assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);
            assert_eq!(
                error.to_string(),
                "the request body is larger than 10 bytes"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait() {
        let silent = pieces(["0"]).into_data_stream().chain(stream::pending());
        let start = Instant::now();
        let error = read_body(StreamBody::new(silent.map(|d| d.map(Frame::data))), LIMITS).await;
        assert_eq!(error.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(start.elapsed(), LIMITS.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_ends_at_the_total() {
        let trickle = stream::unfold((), |()| async {
            tokio::time::advance(LIMITS.idle * 9 / 10).await;
            let piece = Frame::data(Bytes::from_static(b"."));
            Some((Ok::<_, Infallible>(piece), ()))
        });
        let start = Instant::now();
        let read = read_body(StreamBody::new(trickle), LIMITS).await;
        assert_eq!(read.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        assert!(start.elapsed() >= LIMITS.total);
    }

    #[tokio::test]
    async fn a_broken_body_is_the_clients_fault() {
        let broken = stream::iter([Err::<Frame<Bytes>, _>("gone")]);
        let error = read_body(StreamBody::new(broken), LIMITS).await;
        assert_eq!(error.unwrap_err().status(), StatusCode::BAD_REQUEST);
    }
}
