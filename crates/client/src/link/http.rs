//! The Streamable HTTP transport, for both eras.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use plexus_mcp_core::Boxed;
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_protocol::{Era, Revision};
use plexus_mcp_wire::{Id, Limits, Message, Response, sse};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Headers, Inbox, Incoming, LinkError, Number, Outgoing, Room, decoded, rejected};
use crate::auth;
use crate::backoff::{self, Backoff};
use crate::child::Grace;
use crate::definition::HttpTarget;
use crate::error_text::error_text;
use crate::hop_metadata::PROTOCOL_VERSION_HEADER;
use crate::http::{EventSource, HttpClient, HttpError, HttpResponse};
use crate::lock::lock;

const SESSION_ID_HEADER: HeaderName =
    HeaderName::from_static(plexus_mcp_protocol::header::SESSION_ID);
/// Errors of servers that have forgotten a session contain one of these texts, in lower case. The
/// second is what servers of the TypeScript SDK answer after a restart, before they check the session.
const SESSION_LOST_TEXTS: [&str; 2] = ["session", "server not initialized"];
const LAST_EVENT_ID_HEADER: HeaderName = HeaderName::from_static("last-event-id");
/// The delay before a broken stream is resumed, unless the server sets `retry`.
const STREAM_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest such delay that a server may set.
const STREAM_RETRY_DELAY_MAX: Duration = Duration::from_secs(30);
/// The timeout of the DELETE request that ends a session.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of a POST request with a notification or a response, and how many are sent at a time.
pub(super) const POST_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const MAX_CONCURRENT_POSTS: usize = 32;
/// How often in a row a stream is resumed without a new event.
const MAX_RESUMES_WITHOUT_EVENT: u32 = 5;
/// How much of an error page is decoded, and how much of that is shown.
const ERROR_PAGE_MAX_BYTES: usize = 64 * 1024;
const ERROR_PAGE_MAX_CHARS: usize = 300;

/// The transport to a server over Streamable HTTP.
pub(crate) struct HttpLink {
    shared: Arc<Inner>,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Notifications and answers that are being sent.
    posts: Arc<Semaphore>,
    /// Requests the stream for messages that belong to no request. Taken by the first use.
    listen: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
}

struct Inner {
    client: HttpClient,
    target: HttpTarget,
    era: Era,
    limits: Limits,
    inbox: Inbox,
    negotiated: Mutex<Negotiated>,
}

/// The session id and the revision that the handshake negotiated.
#[derive(Default)]
struct Negotiated {
    session: Option<HeaderValue>,
    revision: Option<Revision>,
}

impl HttpLink {
    /// A transport to the server at `target`. Messages that belong to no request are received while
    /// the future is polled. It ends after [`close`](Self::close).
    pub(crate) fn new(
        client: HttpClient,
        target: HttpTarget,
        era: Era,
        limits: Limits,
        inbox: Inbox,
    ) -> (Self, Boxed<()>) {
        let shared = Arc::new(Inner {
            client,
            target,
            era,
            limits,
            inbox,
            negotiated: Mutex::default(),
        });
        let closing = CancellationToken::new();
        let (listen, asked_to_listen) = oneshot::channel();
        let listening = {
            let shared = Arc::clone(&shared);
            async move {
                if let Ok(opened) = asked_to_listen.await {
                    shared.listen(opened).await;
                }
            }
        };
        let work = closing.clone().run_until_cancelled_owned(listening);
        let link = Self {
            shared,
            tasks: TaskTracker::new(),
            closing,
            posts: Arc::new(Semaphore::new(MAX_CONCURRENT_POSTS)),
            listen: Mutex::new(Some(listen)),
        };
        (link, Box::pin(async move { work.await.unwrap_or(()) }))
    }

    /// Sends a notification or a response in a task of its own, which holds `room` until it is done.
    pub(crate) fn send(&self, room: Room<'_>, outgoing: Outgoing) {
        let Room::Post(slot) = room else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        self.tasks
            .spawn(closing.run_until_cancelled_owned(async move {
                let Outgoing { message, taken, .. } = outgoing;
                let post =
                    tokio::time::timeout(POST_TIMEOUT, shared.post_plain(message.freeze())).await;
                if !matches!(post, Ok(Ok(()))) {
                    tracing::debug!("the server did not take a message");
                }
                drop((taken, slot));
            }));
    }

    /// Waits until fewer than [`MAX_CONCURRENT_POSTS`] messages are being sent.
    pub(crate) async fn room(&self) -> Room<'static> {
        match Arc::clone(&self.posts).acquire_owned().await {
            Ok(slot) => Room::Post(slot),
            Err(_closed) => Room::Unlimited,
        }
    }

    /// Sends a request and delivers every message of its response to the inbox, the answer last.
    /// Dropping the future closes the HTTP exchange.
    pub(crate) fn exchange(&self, number: Number, message: Bytes, headers: Headers) -> Boxed<()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            if let Err(error) = shared.exchange(number, message, headers).await {
                let request = number;
                shared.inbox.take(Incoming::Failed { request, error });
            }
        })
    }

    /// A stateless server sees the stream of a request close, and needs no message.
    pub(crate) fn is_told_of_cancellation(&self) -> bool {
        self.shared.era == Era::Handshake
    }

    /// Remembers the negotiated revision, which every later request names.
    pub(crate) fn agree(&self, revision: Revision) {
        lock(&self.shared.negotiated).revision = Some(revision);
    }

    /// Whether the server has opened a session.
    pub(crate) fn has_session(&self) -> bool {
        self.shared.has_session()
    }

    /// Opens the GET stream for messages that belong to no request. `opened` is dropped when the
    /// stream is open, or cannot be opened.
    pub(crate) fn listen(&self, opened: oneshot::Sender<()>) {
        if let Some(listen) = lock(&self.listen).take() {
            drop(listen.send(opened));
        }
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self, grace: Grace) {
        self.closing.cancel();
        self.tasks.close();
        if self.has_session() {
            let request = self.shared.request(Method::DELETE);
            let ending = auth::send(&self.shared.client, &self.shared.target, request);
            let ended = tokio::time::timeout(SESSION_END_TIMEOUT.min(grace.total()), ending).await;
            if !matches!(ended, Ok(Ok(_))) {
                tracing::debug!("the session could not be ended properly");
            }
        }
    }
}

impl Inner {
    /// Sends a request and delivers its response.
    async fn exchange(
        &self,
        number: Number,
        message: Bytes,
        headers: Headers,
    ) -> Result<(), LinkError> {
        let response = self.post(message, headers).await?;
        if let Some(session) = response.headers.get(SESSION_ID_HEADER)
            && self.era == Era::Handshake
        {
            self.opened(session);
        }
        let status = response.status;
        let is_json = response.is_json();
        if !is_json && status == StatusCode::OK && response.is_event_stream() {
            return self.follow(number, response).await;
        }
        // These statuses take precedence over the body: many servers add a JSON-RPC error to them.
        let is_decided = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            || (status == StatusCode::NOT_FOUND && self.has_session());
        let challenge = match status {
            StatusCode::OK => None,
            _ => response.headers.get(header::WWW_AUTHENTICATE).cloned(),
        };
        let body = response.bytes().await.map_err(|error| failed(&error))?;
        if is_json && !is_decided {
            match self.answer(number, body.clone()) {
                Ok(Some(message)) => {
                    let of = Some(number);
                    self.inbox.take(Incoming::Message { message, of });
                    return Ok(());
                }
                Err(error) if status.is_success() || error == LinkError::SessionLost => {
                    return Err(error);
                }
                Ok(None) | Err(_) => {}
            }
        }
        Err(self.refusal(status, challenge, &body))
    }

    /// Follows the stream of a request, over as many connections as it takes.
    async fn follow(&self, number: Number, response: HttpResponse) -> Result<(), LinkError> {
        let mut position = StreamPosition::default();
        let mut stream = response.events();
        let mut resumes = 0;
        loop {
            let before = position.last_event.clone();
            match self.drain(&mut stream, &mut position, Some(number)).await {
                Drained::Answered => return Ok(()),
                Drained::Ended(reason) => {
                    if position.last_event != before {
                        resumes = 0;
                    }
                    let last = match &position.last_event {
                        Some(last)
                            if self.era == Era::Handshake
                                && resumes < MAX_RESUMES_WITHOUT_EVENT =>
                        {
                            last.clone()
                        }
                        _ => return Err(LinkError::Broken(reason)),
                    };
                    resumes += 1;
                    stream = self.resume(&last, position.retry).await?;
                }
            }
        }
    }

    /// Takes a stream up again where it broke off (HTTPLC-06, HTTPLC-07).
    async fn resume(&self, last_event: &str, retry: Duration) -> Result<EventSource, LinkError> {
        let mut failures = 0;
        loop {
            tokio::time::sleep(retry.min(STREAM_RETRY_DELAY_MAX)).await;
            match self.try_resume(last_event).await {
                // The network may be back in a moment; whether the call was carried out is unknown.
                Err(LinkError::Unreachable(text) | LinkError::NoCredentials(text)) => {
                    failures += 1;
                    if failures >= MAX_RESUMES_WITHOUT_EVENT {
                        return Err(LinkError::Broken(format!(
                            "the connection was lost during the call, which may have been carried \
                             out: {text}"
                        )));
                    }
                }
                resumed => return resumed,
            }
        }
    }

    async fn try_resume(&self, last_event: &str) -> Result<EventSource, LinkError> {
        let request = self.get(Some(last_event));
        let response = auth::send(&self.client, &self.target, request).await;
        let response = response.map_err(|error| match error {
            // The call has reached the server before: it must not be sent again after a sign-in.
            LinkError::NeedsAuth { .. } => {
                LinkError::Broken(format!("the answer's stream could not be resumed: {error}"))
            }
            error => error,
        })?;
        if response.status == StatusCode::OK && response.is_event_stream() {
            return Ok(response.events());
        }
        let status = response.status.as_u16();
        Err(LinkError::Broken(format!(
            "the answer's stream could not be resumed (HTTP {status})"
        )))
    }

    /// Delivers the messages of a stream, up to the answer to `of` or the end of the stream.
    async fn drain(
        &self,
        stream: &mut EventSource,
        position: &mut StreamPosition,
        of: Option<Number>,
    ) -> Drained {
        while let Some(event) = stream.next().await {
            let mut is_answered = false;
            let take = |incoming| {
                is_answered |= answers(&incoming, of);
                self.inbox.take(incoming);
            };
            match event {
                Ok(event) => {
                    position.note(&event);
                    if !event.data.is_empty() {
                        decoded(&event.data, &self.limits, of, take);
                    }
                }
                Err(HttpError::EventTooLong {
                    size,
                    limit,
                    envelopes,
                    ..
                }) => rejected::too_large(size, limit, envelopes, take),
                Err(error) => return Drained::Ended(error.to_string()),
            }
            if is_answered {
                return Drained::Answered;
            }
        }
        Drained::Ended("the server closed the stream before it answered".to_owned())
    }

    /// Keeps the GET stream for messages that belong to no request open, as long as the server offers
    /// it. The connection is over when a server that had this stream no longer knows the session, or
    /// repeatedly cannot be reached while no request is in flight.
    async fn listen(&self, opened: oneshot::Sender<()>) {
        let mut position = StreamPosition::default();
        let mut opened = Some(opened);
        let mut was_open = false;
        let mut failures = 0;
        let mut backoff = Backoff::new(STREAM_RETRY_DELAY, STREAM_RETRY_DELAY_MAX);
        loop {
            let mut delay = position
                .retry
                .clamp(STREAM_RETRY_DELAY, STREAM_RETRY_DELAY_MAX);
            let request = self.get(position.last_event.as_deref());
            let response = auth::send(&self.client, &self.target, request).await;
            drop(opened.take());
            match response {
                Ok(response) if response.status == StatusCode::OK && response.is_event_stream() => {
                    (was_open, failures) = (true, 0);
                    backoff.reset();
                    let mut stream = response.events();
                    self.drain(&mut stream, &mut position, None).await;
                }
                // A response that is not a stream: the server offers none.
                Ok(response)
                    if response.status.is_success()
                        || response.status == StatusCode::NOT_IMPLEMENTED =>
                {
                    return;
                }
                Ok(response)
                    if was_open
                        && response.status == StatusCode::NOT_FOUND
                        && self.has_session() =>
                {
                    if self.inbox.is_idle() {
                        self.inbox.take(Incoming::Closed(LinkError::SessionLost));
                        return;
                    }
                    // Requests in flight may still be answered on their own streams.
                }
                // The server has no such stream, or has lost the session.
                Ok(response)
                    if response.status.is_client_error()
                        && response.status != StatusCode::TOO_MANY_REQUESTS =>
                {
                    if was_open {
                        self.inbox.doubt_session();
                    }
                    return;
                }
                Err(error @ LinkError::Unreachable(_)) if was_open => {
                    failures += 1;
                    if failures >= MAX_RESUMES_WITHOUT_EVENT && self.inbox.is_idle() {
                        self.inbox.take(Incoming::Closed(error));
                        return;
                    }
                }
                Ok(_) | Err(_) => delay = delay.max(backoff.next_delay(backoff::random())),
            }
            tokio::time::sleep(delay).await;
        }
    }

    async fn post_plain(&self, message: Bytes) -> Result<(), LinkError> {
        let response = self.post(message, Headers::new()).await?;
        if response.status.is_success() {
            return Ok(());
        }
        let status = response.status;
        let body = response.bytes().await.unwrap_or_default();
        Err(self.refusal(status, None, &body))
    }

    /// The answer in a JSON body, whatever the status: 2026-07-28 answers errors with 400 and 404.
    fn answer(&self, number: Number, body: Bytes) -> Result<Option<Message>, LinkError> {
        log_message(Direction::FromServer, &body);
        let incoming = plexus_mcp_wire::decode(body, &self.limits);
        let incoming = incoming.map_err(|error| rejected::unreadable(&error))?;
        let plexus_mcp_wire::Incoming::Single(Ok(Message::Response(mut response))) = incoming
        else {
            return Ok(None);
        };
        match &response.id {
            Some(id) if id.as_i64() == Some(number) => {}
            None if self.has_session() && forgets_session(&response) => {
                return Err(LinkError::SessionLost);
            }
            // An error without an id belongs to the request that was sent.
            None => response.id = Some(number.into()),
            Some(_) => return Ok(None),
        }
        Ok(Some(Message::Response(response)))
    }

    fn refusal(
        &self,
        status: StatusCode,
        challenge: Option<HeaderValue>,
        body: &Bytes,
    ) -> LinkError {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => LinkError::NeedsAuth {
                status: status.as_u16(),
                challenge: challenge.and_then(|value| value.to_str().ok().map(str::to_owned)),
                wants_user: false,
                reason: None,
            },
            StatusCode::NOT_FOUND if self.has_session() => LinkError::SessionLost,
            StatusCode::BAD_REQUEST if self.has_session() && says_session_lost(body) => {
                LinkError::SessionLost
            }
            _ => {
                let page = body.get(..ERROR_PAGE_MAX_BYTES).unwrap_or(body);
                let page = String::from_utf8_lossy(page).into_owned();
                let page = match &self.target.authorizer {
                    Some(authorizer) => authorizer.mask_credentials(page),
                    None => page,
                };
                let text: String = page.chars().take(ERROR_PAGE_MAX_CHARS).collect();
                let text = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                LinkError::Http {
                    status: status.as_u16(),
                    text,
                }
            }
        }
    }

    fn has_session(&self) -> bool {
        lock(&self.negotiated).session.is_some()
    }

    /// Stores the session id of the first response that has one.
    fn opened(&self, session: &HeaderValue) {
        let mut negotiated = lock(&self.negotiated);
        negotiated.session.get_or_insert_with(|| session.clone());
    }

    async fn post(&self, message: Bytes, headers: Headers) -> Result<HttpResponse, LinkError> {
        let mut request = self.request(Method::POST);
        for (name, value) in headers {
            request.headers_mut().insert(name, value);
        }
        log_message(Direction::ToServer, &message);
        *request.body_mut() = message;
        auth::send(&self.client, &self.target, request).await
    }

    fn get(&self, last_event: Option<&str>) -> Request<Bytes> {
        let mut request = self.request(Method::GET);
        if let Some(Ok(last_event)) = last_event.map(HeaderValue::from_str) {
            request
                .headers_mut()
                .insert(LAST_EVENT_ID_HEADER, last_event);
        }
        request
    }

    fn request(&self, method: Method) -> Request<Bytes> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.target.url.clone();
        *request.headers_mut() = lock(&self.negotiated).headers(&self.target, &method);
        *request.method_mut() = method;
        request
    }
}

impl Negotiated {
    /// The headers of every request.
    fn headers(&self, target: &HttpTarget, method: &Method) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name, value| headers.insert(name, HeaderValue::from_static(value));
        if *method == Method::POST {
            insert(header::ACCEPT, "application/json, text/event-stream");
            insert(header::CONTENT_TYPE, "application/json");
        } else {
            insert(header::ACCEPT, "text/event-stream");
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION_ID_HEADER, session.clone());
        }
        let revision = self.revision;
        if let Some(revision) = revision.filter(|revision| revision.features().version_header) {
            headers.insert(
                PROTOCOL_VERSION_HEADER,
                HeaderValue::from_static(revision.as_str()),
            );
        }
        headers.extend(target.headers.clone());
        headers
    }
}

/// Whether this is the answer to `of`, or the failure that takes its position.
fn answers(incoming: &Incoming, of: Option<Number>) -> bool {
    let number = match incoming {
        Incoming::Message {
            message: Message::Response(response),
            ..
        } => response.id.as_ref().and_then(Id::as_i64),
        Incoming::Failed { request, .. } => Some(*request),
        _ => return false,
    };
    of.is_some() && number == of
}

/// Whether an error without an id says that the session is unknown: many servers answer with such an
/// error, most of them with 400, instead of 404.
fn forgets_session(response: &Response) -> bool {
    let error = response.outcome.as_ref().err();
    error.is_some_and(|error| says_session_lost(error.message.as_bytes()))
}

fn says_session_lost(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    SESSION_LOST_TEXTS.iter().any(|part| text.contains(part))
}

enum Drained {
    Answered,
    Ended(String),
}

/// The position in an event stream, for `Last-Event-ID`.
struct StreamPosition {
    last_event: Option<String>,
    retry: Duration,
}

impl Default for StreamPosition {
    fn default() -> Self {
        Self {
            last_event: None,
            retry: STREAM_RETRY_DELAY,
        }
    }
}

impl StreamPosition {
    fn note(&mut self, event: &sse::Event) {
        if let Some(id) = &event.id {
            self.last_event = Some(id.to_string());
        }
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry);
        }
    }
}

/// Maps an HTTP error to the error of the request, with all causes.
pub(crate) fn failed(error: &HttpError) -> LinkError {
    if let HttpError::TooLarge { size, limit, .. } = *error {
        return LinkError::TooLarge { size, limit };
    }
    let text = error_text(error);
    if error.is_connect() {
        LinkError::Unreachable(text)
    } else {
        LinkError::Broken(text)
    }
}
