//! HTTP+SSE of 2024-11-05: the client opens a stream, whose first event names a second endpoint for
//! the client's messages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming as IncomingBody;
use plexus_mcp_core::Fault;
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use plexus_mcp_wire::sse::Frame;
use plexus_mcp_wire::{Incoming, Message};

use super::head::Head;
use super::sessions::HttpSession;
use super::{Endpoint, reply, streams};
use crate::batch;
use crate::caller::CallerIdentity;
use crate::encoder::{EncodedResponse, anonymous_error};
use crate::event_stream::{EventStream, Read, Reader};
use crate::exchange::{Exchange, Output};
use crate::net::{Body, respond};

/// How often a stream that is to end looks whether calls are still in flight.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The stream of one client. Its end is the session's end.
struct SseStream {
    endpoint: Arc<Endpoint>,
    session: Arc<HttpSession>,
    reader: Reader,
    greeted: bool,
}

impl Drop for SseStream {
    fn drop(&mut self) {
        self.endpoint.sessions.remove(&self.session);
    }
}

impl Endpoint {
    /// GET: opens the stream and names the other endpoint (SSE24-02).
    pub(super) async fn sse_stream(self: &Arc<Self>, head: &Parts) -> Response<Body> {
        if head.method != Method::GET || !self.serves_handshake() {
            return self.unadmitted(respond::method_not_allowed("GET"));
        }
        let caller = match self.admit(head).await {
            Ok(caller) => caller,
            Err(refusal) => return refusal,
        };
        let rules = LifecycleRules::UNORDERED;
        let Ok(session) = self.sessions.open(&self.edge, rules, caller.principal) else {
            return respond::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        if self.sessions.add(Arc::clone(&session)).is_err() {
            return respond::empty(StatusCode::SERVICE_UNAVAILABLE);
        }
        let reader = session.standalone.read(Some(0));
        let endpoint = Arc::clone(self);
        let events = SseStream {
            endpoint,
            session,
            reader,
            greeted: false,
        };
        let events = stream::unfold(events, |mut events| async move {
            events.next().await.map(|event| (event, events))
        });
        respond::sse(Body::events(events, self.options.keep_alive))
    }

    /// POST: responses are sent on the event stream (SSE24-03, SSE24-04).
    pub(super) async fn sse_message(
        self: &Arc<Self>,
        parts: &Parts,
        body: IncomingBody,
    ) -> Response<Body> {
        if parts.method != Method::POST {
            return self.unadmitted(respond::method_not_allowed("POST"));
        }
        let caller = match self.admit(parts).await {
            Ok(caller) => caller,
            Err(refusal) => return refusal,
        };
        let head = Head::read(&parts.headers, &caller);
        if !head.is_json {
            let text = "a message is sent as application/json\n";
            return respond::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        }
        let query = parts.uri.query();
        let id = query.and_then(|query| query.strip_prefix("session="));
        let session = id.and_then(|id| self.sessions.get(id.as_bytes(), &caller.principal));
        let Some(session) = session else {
            let fault = Fault::InvalidRequest("unknown session; open the stream again".to_owned());
            let answer = anonymous_error(head.spoken(), &fault);
            return reply(EncodedResponse {
                status: 404,
                ..answer
            });
        };
        match self.decode(&head, body).await {
            Ok(incoming) => self.take(&session, incoming, &caller),
            Err(response) => return response,
        }
        respond::empty(StatusCode::ACCEPTED)
    }

    fn take(&self, session: &Arc<HttpSession>, incoming: Incoming, caller: &CallerIdentity) {
        let stream = Arc::clone(&session.standalone);
        match incoming {
            Incoming::Single(Ok(Message::Notification(notification))) => {
                session.core.notified(&notification);
            }
            Incoming::Single(Ok(Message::Response(response))) => session.core.answered(response),
            Incoming::Single(Err(malformed)) => {
                stream.push(session.core.malformed(&malformed).message);
            }
            Incoming::Single(Ok(Message::Request(request))) => {
                let asked = match session.core.read(request) {
                    Ok(asked) => asked,
                    Err(answer) => return stream.push(answer.message),
                };
                let (exchange, ticket) = session.core.begin(asked, Some(caller));
                let run = run(exchange, stream);
                self.edge.tracker.spawn(async move {
                    ticket.cancel.run_until_cancelled(run).await;
                });
            }
            Incoming::Batch(messages) => {
                match batch::begin(&session.core, messages, Some(caller)) {
                    Err(answer) => stream.push(answer.message),
                    Ok(batch) => {
                        let sink = session.core.sink().clone();
                        self.edge.tracker.spawn(async move {
                            if let Some(answers) = batch.run(&sink, None).await {
                                stream.push(answers);
                            }
                        });
                    }
                }
            }
        }
    }
}

impl SseStream {
    async fn next(&mut self) -> Option<bytes::Bytes> {
        if !self.greeted {
            self.greeted = true;
            let path = self
                .endpoint
                .options
                .sse
                .as_ref()
                .map(|sse| sse.messages.as_str());
            let uri = format!("{}?session={}", path.unwrap_or_default(), self.session.id);
            let data = Some(uri.as_bytes());
            return Some(streams::frame(&Frame {
                id: None,
                event: Some("endpoint"),
                retry: None,
                data,
            }));
        }
        let shutdown = self.endpoint.edge.shutdown.clone();
        let read = loop {
            // A shut-down lets calls in flight finish; their answers come here.
            let timeout = shutdown.is_cancelled().then_some(DRAIN_POLL_INTERVAL);
            let read = tokio::select! {
                biased;
                read = self.reader.next(timeout) => read,
                () = shutdown.cancelled(), if timeout.is_none() => Read::Silence,
            };
            if read != Read::Silence || !self.session.core.is_busy() {
                break read;
            }
        };
        match read {
            Read::Message(_, message) => Some(streams::message(&message)),
            Read::Silence | Read::End => None,
        }
    }
}

async fn run(mut exchange: Exchange, stream: Arc<EventStream>) {
    loop {
        match exchange.next().await {
            Output::Notification(message) | Output::Progress(message) => stream.offer(message),
            Output::Question(message) => stream.push(message),
            Output::Answer(answer) => return stream.push(answer.message),
        }
    }
}
