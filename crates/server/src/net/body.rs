//! The body of an answer: nothing, bytes, or server-sent events.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use futures_util::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::connections::{Delivery, Receipt};

/// How long a stream of events may be silent before a comment keeps it alive (HTTP26-13).
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The body of an answer.
pub struct Body {
    kind: Kind,
    /// What to do when the client has received the whole body.
    receipt: Option<Receipt>,
}

impl Body {
    /// No bytes at all.
    pub const fn empty() -> Self {
        Self {
            kind: Kind::Empty,
            receipt: None,
        }
    }

    /// These bytes.
    pub const fn full(bytes: Bytes) -> Self {
        Self {
            kind: Kind::Full(bytes),
            receipt: None,
        }
    }

    /// Encoded events as `source` yields them, with a comment after each `keep_alive` of silence.
    ///
    /// The source is polled by the connection itself and dropped with it, so work done inside the
    /// stream ends when the client disconnects.
    pub fn events<S>(source: S, keep_alive: Duration) -> Self
    where
        S: Stream<Item = Bytes> + Send + 'static,
    {
        Self {
            kind: Kind::Events(Box::new(Events::new(Box::pin(source), keep_alive))),
            receipt: None,
        }
    }

    /// Calls `receipt` when the client has received the whole body.
    #[must_use]
    pub(crate) fn on_received(mut self, receipt: impl FnOnce(Delivery) + Send + 'static) -> Self {
        self.receipt = Some(Box::new(receipt));
        self
    }

    /// Ends a stream of events when `end` completes. Other bodies are not changed.
    #[must_use]
    pub(crate) fn until(mut self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        if let Kind::Events(events) = &mut self.kind {
            events.source = events
                .source
                .take()
                .map(|source| source.take_until(Box::pin(end)).boxed());
        }
        self
    }

    /// Whether this is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Events(_))
    }

    pub(super) fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }

    /// Encoded events from a queue, until its senders are dropped. The queue is closed when the client
    /// disconnects.
    pub fn queue(mut events: mpsc::Receiver<Bytes>, keep_alive: Duration) -> Self {
        Self::events(stream::poll_fn(move |cx| events.poll_recv(cx)), keep_alive)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Body")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Kind::Events(events) = &mut self.kind
            && let Some(ready) = std::task::ready!(events.poll_next(cx))
        {
            return Poll::Ready(Some(Ok(Frame::data(ready))));
        }
        let all = match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Full(bytes) if !bytes.is_empty() => Some(Ok(Frame::data(bytes))),
            Kind::Full(_) | Kind::Empty | Kind::Events(_) => None,
        };
        Poll::Ready(all)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Events(events) => events.source.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Bytes),
    Events(Box<Events>),
}

/// A line that every reader of events skips (HTTP26-14).
const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

struct Events {
    /// `None` after its end.
    source: Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>>,
    /// Ticks after a time of silence.
    silence: Interval,
}

impl Events {
    fn new(source: Pin<Box<dyn Stream<Item = Bytes> + Send>>, keep_alive: Duration) -> Self {
        let mut silence = interval_at(Instant::now() + keep_alive, keep_alive);
        silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source: Some(source),
            silence,
        }
    }

    /// The next event, else a comment if the stream was silent for the keep-alive interval.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(None);
        };
        match source.as_mut().poll_next(cx) {
            Poll::Ready(Some(event)) => {
                self.silence.reset();
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => {
                self.source = None;
                Poll::Ready(None)
            }
            Poll::Pending => self.silence.poll_tick(cx).map(|_| Some(KEEP_ALIVE_COMMENT)),
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Events")
            .field("ended", &self.source.is_none())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;

    async fn next(body: &mut Body) -> Option<Bytes> {
        let frame = body.frame().await?;
        Some(frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn bytes_come_in_one_piece() {
        let mut body = Body::full(Bytes::from_static(b"{}"));
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(!body.is_end_stream());
        assert_eq!(next(&mut body).await.unwrap(), "{}");
        assert!(body.is_end_stream());
        assert_eq!(next(&mut body).await, None);
    }

    #[tokio::test]
    async fn no_bytes_are_the_end() {
        for mut body in [Body::empty(), Body::full(Bytes::new())] {
            assert!(body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(0));
            assert_eq!(next(&mut body).await, None);
        }
    }

    #[tokio::test]
    async fn events_come_in_order_until_the_senders_are_gone() {
        let (sender, events) = mpsc::channel(8);
        let mut body = Body::queue(events, KEEP_ALIVE_INTERVAL);
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            sender.try_send(Bytes::from(event)).unwrap();
        }
        assert_eq!(next(&mut body).await.unwrap(), "data: 1\n\n");
        assert_eq!(next(&mut body).await.unwrap(), "data: 2\n\n");
        assert!(next(&mut body).now_or_never().is_none());

        sender.try_send(Bytes::from("data: 3\n\n")).unwrap();
        drop(sender);
        assert_eq!(next(&mut body).await.unwrap(), "data: 3\n\n");
        assert_eq!(next(&mut body).await, None);
        assert!(body.is_end_stream());
        assert_eq!(next(&mut body).await, None);
    }

    /// HTTP26-13: silence is filled with comments, and only silence.
    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_comments() {
        let (sender, events) = mpsc::channel(8);
        let mut body = Body::queue(events, KEEP_ALIVE_INTERVAL);
        let start = Instant::now();
        assert_eq!(next(&mut body).await.unwrap(), KEEP_ALIVE_COMMENT);
        assert_eq!(start.elapsed(), KEEP_ALIVE_INTERVAL);
        assert_eq!(next(&mut body).await.unwrap(), KEEP_ALIVE_COMMENT);
        assert_eq!(start.elapsed(), KEEP_ALIVE_INTERVAL * 2);

        tokio::time::advance(KEEP_ALIVE_INTERVAL / 2).await;
        sender.try_send(Bytes::from("data: 1\n\n")).unwrap();
        assert_eq!(next(&mut body).await.unwrap(), "data: 1\n\n");
        assert_eq!(next(&mut body).await.unwrap(), KEEP_ALIVE_COMMENT);
        assert_eq!(start.elapsed(), KEEP_ALIVE_INTERVAL * 7 / 2);
    }

    /// HTTP26-15: the call behind the stream ends with the stream.
    #[tokio::test]
    async fn dropping_the_body_drops_its_source() {
        let (sender, receiver) = mpsc::channel::<Bytes>(1);
        let inline = stream::once(async move {
            let _held = receiver;
            std::future::pending().await
        });
        let mut body = Body::events(inline.boxed(), KEEP_ALIVE_INTERVAL);
        assert!(next(&mut body).now_or_never().is_none());
        assert!(!sender.is_closed());
        drop(body);
        assert!(sender.is_closed());
    }
}
