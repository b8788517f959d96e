//! HTTP+SSE of 2024-11-05: one stream in, posts out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use plexus_wire::Limits;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::http::failed;
use super::{Inbox, Incoming, LinkError, Outgoing, decoded};
use crate::auth;
use crate::definition::HttpTarget;
use crate::http::{EventSource, HttpClient, HttpResponse};

/// A server that says on a stream where it wants its messages.
pub(crate) struct SseLink {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    reader: AbortOnDropHandle<()>,
}

struct Shared {
    client: HttpClient,
    target: HttpTarget,
    /// Where messages are posted.
    post: Uri,
    inbox: Inbox,
}

impl SseLink {
    /// Opens the stream and waits until the server has said where to post (SSE24-02).
    pub(crate) async fn open(
        client: HttpClient,
        target: HttpTarget,
        limits: Limits,
        inbox: Inbox,
        patience: Duration,
    ) -> Result<Self, LinkError> {
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
            Err(LinkError::Nonsense(
                "the stream ended before its endpoint event".to_owned(),
            ))
        };
        let (post, events) =
            tokio::time::timeout(patience, opening)
                .await
                .map_err(|_elapsed| {
                    LinkError::Nonsense("no endpoint event came on the stream".to_owned())
                })??;
        let tasks = TaskTracker::new();
        let shared = Arc::new(Shared {
            client,
            target,
            post,
            inbox,
        });
        let reader = tasks.spawn(Arc::clone(&shared).read(events, limits));
        Ok(Self {
            shared,
            tasks,
            reader: AbortOnDropHandle::new(reader),
        })
    }

    pub(crate) fn send(&self, outgoing: Outgoing) {
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            // Dropped when the server has answered the post.
            let _taken = outgoing.taken;
            if let Err(error) = shared.post(outgoing.message.freeze()).await
                && let Some(request) = outgoing.request
            {
                shared.inbox.take(Incoming::Failed { request, error });
            }
        });
    }

    pub(crate) fn close(&self) {
        self.reader.abort();
        self.tasks.close();
    }
}

impl Shared {
    async fn post(&self, message: Bytes) -> Result<(), LinkError> {
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
    let nonsense = |why: &str| LinkError::Nonsense(format!("the endpoint event {why}"));
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
