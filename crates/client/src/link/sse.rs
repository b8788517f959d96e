//! The HTTP+SSE transport of 2024-11-05: one event stream in, POST requests out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use plexus_mcp_core::Boxed;
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_wire::Limits;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http::{MAX_CONCURRENT_POSTS, POST_TIMEOUT, failed};
use super::{Inbox, Incoming, LinkError, Outgoing, Room, decoded, rejected};
use crate::auth;
use crate::definition::HttpTarget;
use crate::http::{EventSource, HttpClient, HttpError, HttpResponse};

/// A server over HTTP+SSE: its first event names the URL for POST requests.
pub(crate) struct SseLink {
    shared: Arc<Inner>,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Bounds how many notifications and responses are being sent.
    posts: Arc<Semaphore>,
}

struct Inner {
    client: HttpClient,
    target: HttpTarget,
    /// Where messages are posted.
    post: Uri,
    inbox: Inbox,
}

impl SseLink {
    /// Opens the stream and waits until the server has said where to post (SSE24-02). Messages come
    /// in while the future is polled, which ends after [`close`](Self::close).
    pub(crate) async fn open(
        client: HttpClient,
        target: HttpTarget,
        limits: Limits,
        inbox: Inbox,
        timeout: Duration,
    ) -> Result<(Self, Boxed<()>), LinkError> {
        let request = get(&target);
        let opening = async {
            let response = auth::send(&client, &target, request).await?;
            if !response.status.is_success() || !response.is_event_stream() {
                return Err(refusal(&response));
            }
            let mut events = response.events();
            while let Some(event) = events.next().await {
                let event = event.map_err(|error| failed(&error))?;
                if event.event.as_deref() == Some("endpoint") {
                    let endpoint = String::from_utf8_lossy(&event.data).into_owned();
                    return Ok((resolve(&target.url, &endpoint)?, events));
                }
            }
            Err(LinkError::InvalidAnswer(
                "the stream ended before its endpoint event".to_owned(),
            ))
        };
        let (post, events) =
            tokio::time::timeout(timeout, opening)
                .await
                .map_err(|_elapsed| {
                    LinkError::InvalidAnswer("no endpoint event came on the stream".to_owned())
                })??;
        let tasks = TaskTracker::new();
        let shared = Arc::new(Inner {
            client,
            target,
            post,
            inbox,
        });
        let closing = CancellationToken::new();
        let reading = Arc::clone(&shared).read(events, limits);
        let reading = closing.clone().run_until_cancelled_owned(reading);
        let link = Self {
            shared,
            tasks,
            closing,
            posts: Arc::new(Semaphore::new(MAX_CONCURRENT_POSTS)),
        };
        Ok((link, Box::pin(async move { reading.await.unwrap_or(()) })))
    }

    /// Waits until fewer than [`MAX_CONCURRENT_POSTS`] notifications and responses are being sent.
    pub(crate) async fn room(&self) -> Room<'static> {
        match Arc::clone(&self.posts).acquire_owned().await {
            Ok(slot) => Room::Post(slot),
            Err(_closed) => Room::Unlimited,
        }
    }

    /// Posts a message in a task of its own, which ends with the connection. A request does not hold
    /// `room`, since some servers answer its POST only when they have executed it.
    pub(crate) fn send(&self, room: Room<'_>, outgoing: Outgoing) {
        let slot = match room {
            Room::Post(slot) => Some(slot),
            Room::Queue(_) | Room::Unlimited => None,
        };
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        self.tasks
            .spawn(closing.run_until_cancelled_owned(async move {
                // Dropped when the server has answered the post.
                let _taken = outgoing.taken;
                let post = shared.post(outgoing.message.freeze());
                if let Some(request) = outgoing.request {
                    drop(slot);
                    if let Err(error) = post.await {
                        shared.inbox.take(Incoming::Failed { request, error });
                    }
                } else {
                    if !matches!(timeout(POST_TIMEOUT, post).await, Ok(Ok(()))) {
                        tracing::debug!("the server did not take a message");
                    }
                    drop(slot);
                }
            }));
    }

    pub(crate) fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
    }
}

impl Inner {
    async fn post(&self, message: Bytes) -> Result<(), LinkError> {
        log_message(Direction::ToServer, &message);
        let mut request = Request::new(message);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.post.clone();
        let headers = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.extend(self.target.headers.clone());
        let response = auth::send(&self.client, &self.target, request).await?;
        if response.status.is_success() {
            return Ok(());
        }
        Err(refusal(&response))
    }

    async fn read(self: Arc<Self>, mut events: EventSource, limits: Limits) {
        let reason = loop {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(HttpError::EventTooLong {
                    size,
                    limit,
                    envelopes,
                    ..
                })) => {
                    rejected::too_large(size, limit, envelopes, |incoming| {
                        self.inbox.take(incoming);
                    });
                    continue;
                }
                Some(Err(error)) => break error.to_string(),
                None => break "the server closed the stream".to_owned(),
            };
            if event.event.as_deref().is_some_and(|name| name != "message") || event.data.is_empty()
            {
                continue;
            }
            decoded(&event.data, &limits, None, |incoming| {
                self.inbox.take(incoming);
            });
        };
        let closed = LinkError::Closed(reason);
        self.inbox.take(Incoming::Closed(closed));
    }
}

/// What a refused request means.
fn refusal(response: &HttpResponse) -> LinkError {
    let status = response.status.as_u16();
    match status {
        401 | 403 => {
            let challenge = response.headers.get(header::WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok().map(str::to_owned));
            LinkError::NeedsAuth {
                status,
                challenge,
                wants_user: false,
                reason: None,
            }
        }
        _ => LinkError::Http { status, text: None },
    }
}

fn get(target: &HttpTarget) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = target.url.clone();
    let headers = request.headers_mut();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.extend(target.headers.clone());
    request
}

/// The posting address: given whole or as a path, and always at the stream's own origin, lest a
/// server send our credentials elsewhere.
fn resolve(stream: &Uri, endpoint: &str) -> Result<Uri, LinkError> {
    let nonsense = |why: &str| LinkError::InvalidAnswer(format!("the endpoint event {why}"));
    let given: Uri = endpoint
        .trim()
        .parse()
        .map_err(|_invalid| nonsense("names no address"))?;
    if given.scheme().is_some() {
        if given.scheme() != stream.scheme() || given.authority() != stream.authority() {
            return Err(nonsense("names another origin"));
        }
        return Ok(given);
    }
    let path = given.path_and_query().map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        let base = stream.path().rsplit_once('/').map_or("", |(base, _)| base);
        format!("{base}/{path}")
    };
    let mut parts = stream.clone().into_parts();
    parts.path_and_query = Some(path.parse().map_err(|_invalid| nonsense("names no path"))?);
    Uri::from_parts(parts).map_err(|_invalid| nonsense("names no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SSE24-02, S001-55: paths and whole addresses, but no other origin.
    #[test]
    fn endpoints_are_resolved_at_the_streams_origin() {
        let stream: Uri = "http://127.0.0.1:9/mcp/sse".parse().unwrap();
        let resolved = |endpoint| resolve(&stream, endpoint).map(|uri| uri.to_string());
        assert_eq!(
            resolved("/messages?s=1").unwrap(),
            "http://127.0.0.1:9/messages?s=1"
        );
        assert_eq!(
            resolved("http://127.0.0.1:9/messages?s=1").unwrap(),
            "http://127.0.0.1:9/messages?s=1"
        );
        for elsewhere in [
            "http://evil.example/m",
            "https://127.0.0.1:9/m",
            "http://127.0.0.1:10/m",
            "",
        ] {
            assert!(resolved(elsewhere).is_err(), "{elsewhere}");
        }
    }
}
