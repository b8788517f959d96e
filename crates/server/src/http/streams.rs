//! Event streams as HTTP responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode};
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_wire::sse::{self, Frame};

use super::Endpoint;
use super::sessions::HttpSession;
use crate::event_stream::{EventStream, Read, Reader};
use crate::exchange::{Exchange, Output};
use crate::net::{Body, Delivery, respond};

/// A legacy stream to one connection.
struct Legacy {
    endpoint: Arc<Endpoint>,
    number: u64,
    reader: Reader,
    /// Sent before everything else.
    priming: Option<Bytes>,
    /// How long the stream may be silent before it is closed, to be resumed later.
    idle_timeout: Option<Duration>,
    /// Set when the stream has ended and all its messages were handed to the connection.
    read_all: Arc<AtomicBool>,
}

/// The stream of a request, from its beginning.
pub(super) fn open(
    endpoint: &Arc<Endpoint>,
    session: &Arc<HttpSession>,
    number: u64,
    stream: &Arc<EventStream>,
) -> Response<Body> {
    let priming = session.core.spoken().features().stream_polling.then(|| {
        let retry = u64::try_from(endpoint.options.retry.as_millis()).ok();
        let id = event_id(number, 0);
        frame(&Frame {
            id: Some(&id),
            event: None,
            retry,
            data: Some(b""),
        })
    });
    let idle_timeout = release_after(endpoint, session);
    let reader = stream.read(Some(0));
    respond_with(endpoint, session, number, reader, priming, idle_timeout)
}

/// How long a stream of the session may be silent before it is closed; `None` if the client cannot
/// poll.
pub(super) fn release_after(endpoint: &Endpoint, session: &HttpSession) -> Option<Duration> {
    let polling = session.core.spoken().features().stream_polling;
    endpoint.options.release_after.filter(|_| polling)
}

/// A stream that the client comes back to, or the one for messages that belong to no request.
pub(super) fn resume(
    endpoint: &Arc<Endpoint>,
    session: &Arc<HttpSession>,
    last_event: Option<&HeaderValue>,
) -> Response<Body> {
    let Some(last_event) = last_event else {
        let reader = session.standalone.read(None);
        return respond_with(endpoint, session, 0, reader, None, None);
    };
    let place = last_event.to_str().ok().and_then(parse_event_id);
    let stream = place.and_then(|(number, _)| session.stream(number));
    match (place, stream) {
        (Some((number, after)), Some(stream)) if stream.can_resume(after) => {
            let reader = stream.read(Some(after));
            respond_with(endpoint, session, number, reader, None, None)
        }
        _ => respond::text(
            StatusCode::BAD_REQUEST,
            "this Last-Event-ID is unknown, or the messages after it are no longer kept: the stream \
             was read to its end, is too old, or exceeded the memory for messages to resend; send \
             the request again\n",
        ),
    }
}

fn respond_with(
    endpoint: &Arc<Endpoint>,
    session: &Arc<HttpSession>,
    number: u64,
    reader: Reader,
    priming: Option<Bytes>,
    idle_timeout: Option<Duration>,
) -> Response<Body> {
    let endpoint = Arc::clone(endpoint);
    let keep_alive = endpoint.options.keep_alive;
    let read_all = Arc::new(AtomicBool::new(false));
    let legacy = Legacy {
        endpoint,
        number,
        reader,
        priming,
        idle_timeout,
        read_all: Arc::clone(&read_all),
    };
    let events = stream::unfold(legacy, |mut legacy| async move {
        legacy.next().await.map(|event| (event, legacy))
    });
    let mut body = Body::events(events, keep_alive);
    if number > 0 {
        let session = Arc::downgrade(session);
        body = body.on_received(move |delivery| {
            if !read_all.load(Ordering::Relaxed) {
                return;
            }
            let Some(session) = session.upgrade() else {
                return;
            };
            match delivery {
                Delivery::Certain => session.forget_stream(number),
                Delivery::Likely => {
                    if let Some(stream) = session.stream(number) {
                        stream.expire_soon();
                    }
                }
            }
        });
    }
    respond::sse(body)
}

impl Legacy {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(priming) = self.priming.take() {
            return Some(priming);
        }
        // A shut-down ends streams that would otherwise stay open for ever.
        let standalone = self.number == 0;
        let read = tokio::select! {
            biased;
            read = self.reader.next(self.idle_timeout) => read,
            () = self.endpoint.edge.shutdown.cancelled(), if standalone => Read::End,
        };
        match read {
            Read::Message(number, message) => {
                let id = event_id(self.number, number);
                let event = Some("message");
                Some(frame(&Frame {
                    id: Some(&id),
                    event,
                    retry: None,
                    data: Some(&message),
                }))
            }
            Read::Silence => None,
            Read::End => {
                let read_all = self.reader.has_read_all();
                self.read_all.store(read_all, Ordering::Relaxed);
                None
            }
        }
    }
}

/// The stream of a stateless request: polled by its connection, and dropped, that is cancelled,
/// with it.
pub(super) fn stateless(
    first: Option<Bytes>,
    exchange: Exchange,
    keep_alive: Duration,
) -> Response<Body> {
    let events = stream::unfold((first, Some(exchange)), |(first, exchange)| async move {
        if let Some(first) = first {
            return Some((message(&first), (None, exchange)));
        }
        let mut exchange = exchange?;
        match exchange.next().await {
            Output::Notification(next) | Output::Progress(next) | Output::Question(next) => {
                Some((message(&next), (None, Some(exchange))))
            }
            Output::Answer(answer) => Some((message(&answer.message), (None, None))),
        }
    });
    respond::sse(Body::events(events, keep_alive))
}

/// A message without an id: its stream cannot be resumed.
pub(super) fn message(message: &[u8]) -> Bytes {
    frame(&Frame {
        id: None,
        event: Some("message"),
        retry: None,
        data: Some(message),
    })
}

pub(super) fn frame(frame: &Frame<'_>) -> Bytes {
    if let Some(message) = frame.data {
        log_message(Direction::ToClient, message);
    }
    let mut bytes = BytesMut::new();
    sse::encode(&mut bytes, frame);
    bytes.freeze()
}

/// C20, HTTPL-16: unique in the session, and naming the stream.
fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
