use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use plexus_mcp_wire::sse::{Decoder, Event};

use super::body::ResponseBody;
use super::error::HttpError;
use super::options::HttpClientOptions;
use super::origin::Origin;

/// An answer whose body is still to be read. Dropping it closes the connection if the body has
/// not arrived.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status: any, redirects and errors included.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: ResponseBody,
    origin: Origin,
    max_body: usize,
    max_event: usize,
}

/// The events of an answer, as they arrive. Dropping it closes the connection.
#[derive(Debug)]
pub struct EventSource {
    decoder: Decoder,
    /// None after the end.
    body: Option<ResponseBody>,
    origin: Origin,
}

impl HttpResponse {
    pub(super) fn new(
        head: Parts,
        body: ResponseBody,
        origin: Origin,
        options: &HttpClientOptions,
    ) -> Self {
        Self {
            status: head.status,
            headers: head.headers,
            body,
            origin,
            max_body: options.max_body,
            max_event: options.max_event,
        }
    }

    /// Whether the body is an event stream.
    pub fn is_event_stream(&self) -> bool {
        self.is_of_type("text/event-stream")
    }

    /// Whether the body is JSON.
    pub fn is_json(&self) -> bool {
        self.is_of_type("application/json")
    }

    /// The whole body. Dropping the future cancels the request.
    pub async fn bytes(mut self) -> Result<Bytes, HttpError> {
        let announced = self.body.announced_length();
        self.check_size(announced)?;
        let Some(first) = self.body.next(&self.origin).await? else {
            return Ok(Bytes::new());
        };
        self.check_size(first.len() as u64)?;
        if self.body.is_at_end() {
            return Ok(first);
        }
        let announced = usize::try_from(announced).unwrap_or_default();
        let mut whole = BytesMut::with_capacity(announced.max(first.len()));
        whole.extend_from_slice(&first);
        while let Some(part) = self.body.next(&self.origin).await? {
            self.check_size((whole.len() + part.len()) as u64)?;
            whole.extend_from_slice(&part);
        }
        Ok(whole.freeze())
    }

    fn check_size(&self, size: u64) -> Result<(), HttpError> {
        let limit = self.max_body;
        if size <= limit as u64 {
            return Ok(());
        }
        Err(HttpError::TooLarge {
            origin: self.origin.clone(),
            size,
            limit,
        })
    }

    /// The body as an event stream, whatever its type says.
    pub fn events(self) -> EventSource {
        EventSource {
            decoder: Decoder::new(self.max_event),
            body: Some(self.body),
            origin: self.origin,
        }
    }

    fn is_of_type(&self, wanted: &str) -> bool {
        let value = self.headers.get(CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok());
        let essence = text.and_then(|text| text.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
    }
}

impl EventSource {
    /// The next event; none after the stream has come to its end.
    ///
    /// An event that is too long is an error when it has ended, after which the stream goes on. Any
    /// other error is its end. Dropping the future loses nothing: the next call continues where it
    /// was.
    pub async fn next(&mut self) -> Option<Result<Event, HttpError>> {
        loop {
            if let Some(event) = self.decoder.next() {
                return Some(event.map_err(|too_long| HttpError::EventTooLong {
                    origin: self.origin.clone(),
                    size: too_long.size,
                    limit: too_long.limit,
                    envelopes: too_long.envelopes,
                }));
            }
            match self.body.as_mut()?.next(&self.origin).await {
                Ok(Some(data)) => self.decoder.feed(&data),
                Ok(None) => self.body = None,
                Err(error) => {
                    self.body = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
