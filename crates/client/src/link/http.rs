//! Streamable HTTP, of both eras.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use plexus_mcp::Revision;
use plexus_service::Boxed;
use plexus_wire::{Arrived, Id, Limits, Message, Response, sse};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Headers, Inbox, Incoming, Junk, LinkError, Number, Outgoing, decoded};
use crate::auth;
use crate::chain::chain;
use crate::definition::HttpTarget;
use crate::http::{EventSource, HttpClient, HttpError, HttpResponse, Template};
use crate::lock::lock;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// What servers speak of that have forgotten ours.
const SPOKEN: &[u8] = b"session";
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// When a broken stream is taken up again, unless the server says otherwise.
const RETRY: Duration = Duration::from_secs(1);
/// The longest that a server may have us wait.
const MAX_RETRY: Duration = Duration::from_secs(30);
/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a server may take to take a notification or an answer, and how many it may be taking.
const POST: Duration = Duration::from_secs(30);
const MAX_POSTS: usize = 32;
/// How often in a row a stream is taken up again without a new event.
const MAX_RESUMES: u32 = 5;
/// How much of an error page is read, and how much of that is shown.
const READ: usize = 64 * 1024;
const SHOWN: usize = 300;

/// How the server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Sessions, and streams that can be resumed.
    Handshake,
    /// Every request by itself; closing its stream cancels it.
    Stateless,
}

/// A server behind an HTTP endpoint.
pub(crate) struct HttpLink {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Notifications and answers that are being sent.
    posts: Arc<Semaphore>,
}

struct Shared {
    client: HttpClient,
    target: HttpTarget,
    style: Style,
    limits: Limits,
    inbox: Inbox,
    agreed: Mutex<Agreed>,
}

/// What the handshake settled.
#[derive(Default)]
struct Agreed {
    session: Option<HeaderValue>,
    revision: Option<Revision>,
    /// What every message begins with, made once; none if there is no way to write it.
    post: Option<Arc<Template>>,
}

impl HttpLink {
    pub(crate) fn new(
        client: HttpClient,
        target: HttpTarget,
        style: Style,
        limits: Limits,
        inbox: Inbox,
    ) -> Self {
        let mut agreed = Agreed::default();
        agreed.prepare(&client, &target);
        Self {
            shared: Arc::new(Shared {
                client,
                target,
                style,
                limits,
                inbox,
                agreed: Mutex::new(agreed),
            }),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            posts: Arc::new(Semaphore::new(MAX_POSTS)),
        }
    }

    /// Sends a notification or an answer, unless the server is busy taking others.
    pub(crate) fn try_send(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let Ok(slot) = Arc::clone(&self.posts).try_acquire_owned() else {
            return Err(outgoing);
        };
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        self.tasks
            .spawn(closing.run_until_cancelled_owned(async move {
                let Outgoing { message, taken, .. } = outgoing;
                let post = tokio::time::timeout(POST, shared.post_plain(message.freeze())).await;
                if !matches!(post, Ok(Ok(()))) {
                    tracing::debug!("the server did not take a message");
                }
                drop((taken, slot));
            }));
        Ok(())
    }

    /// Waits until the server can take another message.
    pub(crate) async fn room(&self) {
        drop(self.posts.acquire().await);
    }

    /// Carries a request to its answer, which goes to the inbox as whatever comes before it. Dropping
    /// the future closes the connection.
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
        self.shared.style == Style::Handshake
    }

    /// Remembers the agreed revision, which every later request names.
    pub(crate) fn agree(&self, revision: Revision) {
        let mut agreed = lock(&self.shared.agreed);
        agreed.revision = Some(revision);
        agreed.prepare(&self.shared.client, &self.shared.target);
    }

    /// Whether the server opened a session that can be closed, and lost.
    pub(crate) fn has_session(&self) -> bool {
        self.shared.has_session()
    }

    /// Opens the stream on which a legacy server says what belongs to no request. `opened` is
    /// dropped when it is open, or is known not to open.
    pub(crate) fn listen(&self, opened: oneshot::Sender<()>) {
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            closing.run_until_cancelled(shared.listen(opened)).await;
        });
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        if self.has_session() {
            let request = self.shared.request(Method::DELETE);
            let ending = auth::send(&self.shared.client, &self.shared.target, request);
            let ended = tokio::time::timeout(FAREWELL, ending).await;
            if !matches!(ended, Ok(Ok(_))) {
                tracing::debug!("the session could not be ended properly");
            }
        }
    }
}

impl Shared {
    /// Carries a request to its answer.
    async fn exchange(
        &self,
        number: Number,
        message: Bytes,
        headers: Headers,
    ) -> Result<(), LinkError> {
        let response = self.post(message, headers).await?;
        if let Some(session) = response.headers.get(SESSION)
            && self.style == Style::Handshake
        {
            self.opened(session);
        }
        let status = response.status;
        let is_json = response.is_json();
        if !is_json && status == StatusCode::OK && response.is_event_stream() {
            // Boxed, lest those who are answered at once carry it along.
            return Box::pin(self.follow(number, response)).await;
        }
        // What the status alone says goes before what the body says: many servers put a JSON-RPC
        // error beside it.
        let is_decided = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            || (status == StatusCode::NOT_FOUND && self.has_session());
        let challenge = match status {
            StatusCode::OK => None,
            _ => response.headers.get(header::WWW_AUTHENTICATE).cloned(),
        };
        let body = response.whole().await.map_err(|error| failed(&error))?;
        if is_json
            && !is_decided
            && let Some(message) = self.answer(number, body.clone())
        {
            let of = Some(number);
            self.inbox.take(Incoming::Message { message, of });
            return Ok(());
        }
        Err(self.refusal(status, challenge, &body.into_bytes()))
    }

    /// Follows the stream of a request, over as many connections as it takes.
    async fn follow(&self, number: Number, response: HttpResponse) -> Result<(), LinkError> {
        let mut place = Place::default();
        let mut stream = response.events();
        let mut resumes = 0;
        loop {
            let before = place.last_event.clone();
            match self.drain(&mut stream, &mut place, Some(number)).await {
                Drained::Answered => return Ok(()),
                Drained::Ended(reason) => {
                    if place.last_event != before {
                        resumes = 0;
                    }
                    let last = match &place.last_event {
                        Some(last) if self.style == Style::Handshake && resumes < MAX_RESUMES => {
                            last.clone()
                        }
                        _ => return Err(LinkError::Broken(reason)),
                    };
                    resumes += 1;
                    stream = self.resume(&last, place.retry).await?;
                }
            }
        }
    }

    /// Takes a stream up again where it broke off (HTTPLC-06, HTTPLC-07).
    async fn resume(&self, last_event: &str, retry: Duration) -> Result<EventSource, LinkError> {
        let mut failures = 0;
        loop {
            tokio::time::sleep(retry.min(MAX_RETRY)).await;
            match self.try_resume(last_event).await {
                // The network may be back in a moment; whether the call was carried out is unknown.
                Err(LinkError::Unreachable(text)) => {
                    failures += 1;
                    if failures >= MAX_RESUMES {
                        return Err(LinkError::Broken(text));
                    }
                }
                resumed => return resumed,
            }
        }
    }

    async fn try_resume(&self, last_event: &str) -> Result<EventSource, LinkError> {
        let request = self.get(Some(last_event));
        let response = auth::send(&self.client, &self.target, request).await?;
        if response.status == StatusCode::OK && response.is_event_stream() {
            return Ok(response.events());
        }
        let status = response.status.as_u16();
        Err(LinkError::Broken(format!(
            "the answer's stream could not be resumed (HTTP {status})"
        )))
    }

    /// Hands on what a stream says, until the answer to `of` or its end.
    async fn drain(
        &self,
        stream: &mut EventSource,
        place: &mut Place,
        of: Option<Number>,
    ) -> Drained {
        while let Some(event) = stream.next().await {
            let event = match event {
                Ok(event) => event,
                Err(HttpError::EventTooLong { .. }) => {
                    self.inbox.take(Incoming::Junk(Junk::TooLong));
                    continue;
                }
                Err(error) => return Drained::Ended(error.to_string()),
            };
            place.note(&event);
            if event.data.is_empty() {
                continue;
            }
            let mut is_answered = false;
            decoded(&event.data, &self.limits, of, |incoming| {
                is_answered |= answers(&incoming, of);
                self.inbox.take(incoming);
            });
            if is_answered {
                return Drained::Answered;
            }
        }
        Drained::Ended("the server closed the stream before it answered".to_owned())
    }

    /// The stream for what belongs to no request: opened for as long as the server offers it.
    async fn listen(&self, opened: oneshot::Sender<()>) {
        let mut place = Place::default();
        let mut opened = Some(opened);
        loop {
            let request = self.get(place.last_event.as_deref());
            let response = auth::send(&self.client, &self.target, request).await;
            drop(opened.take());
            match response {
                Ok(response) if response.status == StatusCode::OK && response.is_event_stream() => {
                    let mut stream = response.events();
                    self.drain(&mut stream, &mut place, None).await;
                }
                // It has none, or knows us no more; requests will find out which.
                Ok(response) if response.status.is_client_error() => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(place.retry.clamp(RETRY, MAX_RETRY)).await;
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
    fn answer(&self, number: Number, body: Arrived) -> Option<Message> {
        let Ok(plexus_wire::Incoming::Single(Ok(Message::Response(mut response)))) =
            body.decode(&self.limits)
        else {
            return None;
        };
        match &response.id {
            Some(id) if id.as_i64() == Some(number) => {}
            // An error without an id can only mean the one request that was sent.
            None if self.has_session() && forgets_session(&response) => return None,
            None => response.id = Some(number.into()),
            Some(_) => return None,
        }
        Some(Message::Response(response))
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
            StatusCode::BAD_REQUEST if self.has_session() && speaks_of_session(body) => {
                LinkError::SessionLost
            }
            _ => {
                let page = body.get(..READ).unwrap_or(body);
                let page = String::from_utf8_lossy(page).into_owned();
                let page = match &self.target.authorizer {
                    Some(authorizer) => authorizer.conceal(page),
                    None => page,
                };
                let text: String = page.chars().take(SHOWN).collect();
                let text = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                LinkError::Http {
                    status: status.as_u16(),
                    text,
                }
            }
        }
    }

    fn has_session(&self) -> bool {
        lock(&self.agreed).session.is_some()
    }

    /// The server opened a session, unless it has long done so.
    fn opened(&self, session: &HeaderValue) {
        let mut agreed = lock(&self.agreed);
        if agreed.session.is_none() {
            agreed.session = Some(session.clone());
            agreed.prepare(&self.client, &self.target);
        }
    }

    async fn post(&self, message: Bytes, headers: Headers) -> Result<HttpResponse, LinkError> {
        let prepared = lock(&self.agreed).post.clone();
        match prepared {
            Some(template) => {
                auth::send_as(&self.client, &self.target, &template, &headers, message).await
            }
            // There is something wrong with the address, which is told like all that goes wrong.
            None => auth::send(&self.client, &self.target, self.request(Method::POST)).await,
        }
    }

    fn get(&self, last_event: Option<&str>) -> Request<Bytes> {
        let mut request = self.request(Method::GET);
        if let Some(Ok(last_event)) = last_event.map(HeaderValue::from_str) {
            request.headers_mut().insert(LAST_EVENT, last_event);
        }
        request
    }

    fn request(&self, method: Method) -> Request<Bytes> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.target.url.clone();
        *request.headers_mut() = lock(&self.agreed).headers(&self.target, &method);
        *request.method_mut() = method;
        request
    }
}

impl Agreed {
    /// Makes what every message begins with, now that it has changed.
    fn prepare(&mut self, client: &HttpClient, target: &HttpTarget) {
        let headers = self.headers(target, &Method::POST);
        let template = client.template(Method::POST, &target.url, headers);
        self.post = template.ok().map(Arc::new);
    }

    /// What every request says.
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
            headers.insert(SESSION, session.clone());
        }
        let revision = self.revision;
        if let Some(revision) = revision.filter(|revision| revision.features().version_header) {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers.extend(target.headers.clone());
        headers
    }
}

/// Whether this is the answer to `of`.
fn answers(incoming: &Incoming, of: Option<Number>) -> bool {
    let Incoming::Message {
        message: Message::Response(response),
        ..
    } = incoming
    else {
        return false;
    };
    let id = response.id.as_ref();
    of.is_some() && id.and_then(Id::as_i64) == of
}

/// Whether an error that answers no request is about the session: what 404 is for, many servers say
/// with 400 and such an error.
fn forgets_session(response: &Response) -> bool {
    let error = response.outcome.as_ref().err();
    error.is_some_and(|error| speaks_of_session(error.message.as_bytes()))
}

fn speaks_of_session(text: &[u8]) -> bool {
    text.to_ascii_lowercase()
        .windows(SPOKEN.len())
        .any(|window| window == SPOKEN)
}

enum Drained {
    Answered,
    Ended(String),
}

/// Where a stream stands.
struct Place {
    last_event: Option<String>,
    retry: Duration,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            last_event: None,
            retry: RETRY,
        }
    }
}

impl Place {
    fn note(&mut self, event: &sse::Event) {
        if let Some(id) = &event.id {
            self.last_event = Some(id.to_string());
        }
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry);
        }
    }
}

/// What an HTTP failure means for the request that met it, with all its causes.
pub(crate) fn failed(error: &HttpError) -> LinkError {
    let text = chain(error);
    if error.is_connect() {
        LinkError::Unreachable(text)
    } else {
        LinkError::Broken(text)
    }
}
