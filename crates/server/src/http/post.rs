//! POST: one message, or a batch of an old session.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Incoming as IncomingBody;
use plexus_mcp_core::Fault;
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::classify::{self, Kind, MessageFacts, Route};
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use plexus_mcp_wire::{self as wire, Id, Incoming, Message};
use tokio::time::timeout;

use super::head::{Head, SESSION_HEADER};
use super::sessions::HttpSession;
use super::{Endpoint, legacy_request, reply, streams};
use crate::batch;
use crate::caller::{Caller, CallerIdentity};
use crate::encoder::{EncodedResponse, ResponseEncoder, anonymous_error};
use crate::event_stream::{Beginning, EventStream};
use crate::exchange::{Exchange, Output};
use crate::net::{self, Body, BodyLimits, ReadError, respond};
use crate::parsed_request::{ParsedRequest, decode_fault};
use crate::session_sink::SessionSink;
use crate::stateless;

impl Endpoint {
    pub(super) async fn post(self: &Arc<Self>, head: &Parts, body: IncomingBody) -> Response<Body> {
        let caller = match self.admit(head).await {
            Ok(caller) => caller,
            Err(refusal) => return refusal,
        };
        let head = &Head::read(&head.headers, &caller);
        if !head.is_json {
            let text = "a message is sent as application/json\n";
            return respond::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        }
        if !head.accepted.is_anything() {
            let text = "answers are application/json or text/event-stream; send an Accept header that allows both\n";
            return respond::text(StatusCode::NOT_ACCEPTABLE, text);
        }
        match self.decode(head, body).await {
            Ok(incoming) => self.answer(head, incoming).await,
            Err(response) => response,
        }
    }

    async fn answer(self: &Arc<Self>, head: &Head<'_>, incoming: Incoming) -> Response<Body> {
        match incoming {
            Incoming::Batch(messages) => self.batch(head, messages).await,
            Incoming::Single(Ok(message)) => self.message(head, message).await,
            Incoming::Single(Err(malformed)) => {
                let fault = Fault::InvalidRequest(malformed.reason.to_string());
                let refusal = match &malformed.id {
                    Some(id) => self.encoder(head).error(id, &fault),
                    None => anonymous_error(head.spoken(), &fault),
                };
                reply(refusal)
            }
        }
    }

    pub(super) async fn decode(
        &self,
        head: &Head<'_>,
        body: IncomingBody,
    ) -> Result<Incoming, Response<Body>> {
        let limits = self.edge.options.limits;
        let body_limits = BodyLimits {
            bytes: limits.max_bytes,
            idle: self.options.body_idle,
            total: self.options.body_total,
        };
        let message = match net::read_body(body, body_limits).await {
            Ok(message) => message,
            Err(ReadError::TooLarge { limit }) => {
                let fault = Fault::TooLarge { limit };
                let response = reply(anonymous_error(head.spoken(), &fault));
                return Err(respond::closing(response));
            }
            Err(error) => return Err(error.to_response()),
        };
        log_message(Direction::FromClient, &message);
        wire::decode(message, &limits)
            .map_err(|error| reply(anonymous_error(head.spoken(), &decode_fault(error))))
    }

    async fn message(self: &Arc<Self>, head: &Head<'_>, message: Message) -> Response<Body> {
        let request = match message {
            Message::Request(request) => request,
            other => return self.one_way(head, other),
        };
        let asked = match ParsedRequest::read(request) {
            Ok(asked) => asked,
            Err((id, Fault::InvalidParams(text))) if head.speaks_stateless() => {
                let fault = Fault::MissingMeta(text);
                return reply(self.encoder(head).error(&id, &fault));
            }
            Err((id, fault)) => return reply(self.encoder(head).error(&id, &fault)),
        };
        let facts = MessageFacts {
            kind: Kind::Request(&asked.method),
            requested: asked.meta.handshake_version.as_deref(),
            version_in_meta: asked.meta.protocol_version.is_some(),
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        let route = match classify::route_http(&facts, self.edge.options.served) {
            Ok(route) => route,
            Err(fault) => return reply(self.refusal(head, Some(&asked.id), &fault)),
        };
        match route {
            Route::Ignore => respond::empty(StatusCode::ACCEPTED),
            Route::Stateless => {
                let caller = Caller {
                    identity: head.caller.clone(),
                    presence: None,
                };
                let exchange = stateless::begin(&self.edge, asked, Some(head.headers), caller);
                self.answer_stateless(head, exchange).await
            }
            Route::Handshake => match self.session(head) {
                // A second handshake: the session itself refuses it.
                Ok(session) => self.in_session(head, session, asked).await,
                Err(_) => self.open_session(asked, head.caller),
            },
            Route::Session => match self.session(head) {
                Ok(session) => self.in_session(head, session, asked).await,
                Err(answer) => reply(answer),
            },
        }
    }

    /// Handles a message that needs no response.
    fn one_way(&self, head: &Head<'_>, message: Message) -> Response<Body> {
        let kind = match &message {
            Message::Response(_) => Kind::Response,
            _ => Kind::Notification,
        };
        let facts = MessageFacts {
            kind,
            requested: None,
            version_in_meta: false,
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        match classify::route_http(&facts, self.edge.options.served) {
            Err(fault) => return reply(self.refusal(head, None, &fault)),
            Ok(Route::Ignore) => {}
            Ok(_) => match (self.session(head), message) {
                (Err(answer), _) => return reply(answer),
                (Ok(session), Message::Notification(told)) => session.core.notified(&told),
                (Ok(session), Message::Response(response)) => session.core.answered(response),
                (Ok(_), Message::Request(_)) => {}
            },
        }
        respond::empty(StatusCode::ACCEPTED)
    }

    /// Answers with JSON if the answer comes first, else with a stream (HTTPL-05).
    async fn in_session(
        self: &Arc<Self>,
        head: &Head<'_>,
        session: Arc<HttpSession>,
        asked: ParsedRequest,
    ) -> Response<Body> {
        let id = asked.id.clone();
        let (exchange, ticket) = match session.core.begin(asked, Some(head.caller)) {
            (Exchange::Answered(answer), _) => return reply(answer),
            begun => begun,
        };
        let (number, stream) = session.open_stream();
        let streaming = head.accepted.events;
        let messages = if streaming {
            Arc::clone(&stream)
        } else {
            Arc::clone(&session.standalone)
        };
        let running = legacy_request::run(exchange, ticket, number, Arc::clone(&stream), messages);
        self.edge.tracker.spawn(running);
        let mut wait = self.options.stream_after;
        if let Some(release) = streams::release_after(self, &session) {
            wait = wait.min(release);
        }
        let wait = streaming.then_some(wait);
        let beginning = self.beginning(&session, number, &stream, wait).await;
        // C08: over HTTP a cancelled request must be answered as well.
        beginning.unwrap_or_else(|| reply(session.core.refuse(&id, &Fault::Cancelled)))
    }

    /// Answers with JSON if the answer is the first message of `stream` and comes within `wait`, else
    /// with the stream. `None` if the stream ends without a message.
    async fn beginning(
        self: &Arc<Self>,
        session: &Arc<HttpSession>,
        number: u64,
        stream: &Arc<EventStream>,
        wait: Option<Duration>,
    ) -> Option<Response<Body>> {
        // Runs as well if the client disconnects, which drops this future.
        let _waiting = Waiting(stream);
        let beginning = match wait {
            Some(wait) => timeout(wait, stream.beginning()).await.ok(),
            None => Some(stream.beginning().await),
        };
        match beginning {
            Some(Beginning::Answer(answer)) => {
                session.forget_stream(number);
                Some(reply(answer))
            }
            Some(Beginning::Nothing) => {
                session.forget_stream(number);
                None
            }
            Some(Beginning::Message) | None => Some(streams::open(self, session, number, stream)),
        }
    }

    /// `initialize`: opens a session, unless the answer is an error.
    fn open_session(&self, asked: ParsedRequest, caller: &CallerIdentity) -> Response<Body> {
        let id = asked.id.clone();
        let principal = caller.principal.clone();
        let session = self
            .sessions
            .open(&self.edge, LifecycleRules::UNORDERED, principal);
        let session = match session {
            Ok(session) => session,
            Err(error) => {
                tracing::error!(%error, "no randomness for a session id");
                return respond::empty(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        let (exchange, _ticket) = session.core.begin(asked, Some(caller));
        let Exchange::Answered(answer) = exchange else {
            return respond::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        if session.core.revision().is_none() {
            return reply(answer);
        }
        let Ok(session_id) = HeaderValue::try_from(session.id.to_string()) else {
            return respond::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let core = Arc::clone(&session.core);
        if self.sessions.add(session).is_err() {
            let fault = Fault::Busy("too many sessions are in use; try again later".to_owned());
            return reply(EncodedResponse {
                status: 503,
                ..core.refuse(&id, &fault)
            });
        }
        let mut response = reply(answer);
        response.headers_mut().insert(SESSION_HEADER, session_id);
        response
    }

    /// Answers with JSON if the answer comes first, else with a stream. A lost connection drops
    /// the exchange and so cancels the request (HTTP26-15).
    async fn answer_stateless(&self, head: &Head<'_>, mut exchange: Exchange) -> Response<Body> {
        if !head.accepted.events {
            return answer_without_stream(exchange).await;
        }
        let first = match timeout(self.options.stream_after, exchange.next()).await {
            Ok(Output::Answer(answer)) => return reply(answer),
            Ok(Output::Notification(first) | Output::Progress(first) | Output::Question(first)) => {
                Some(first)
            }
            Err(_elapsed) => None,
        };
        streams::stateless(first, exchange, self.options.keep_alive)
    }

    async fn batch(
        self: &Arc<Self>,
        head: &Head<'_>,
        messages: Vec<Result<Message, wire::Malformed>>,
    ) -> Response<Body> {
        let facts = MessageFacts {
            kind: Kind::Batch,
            requested: None,
            version_in_meta: false,
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        if let Err(fault) = classify::route_http(&facts, self.edge.options.served) {
            return reply(anonymous_error(head.spoken(), &fault));
        }
        let session = match self.session(head) {
            Ok(session) => session,
            Err(answer) => return reply(answer),
        };
        let batch = match batch::begin(&session.core, messages, Some(head.caller)) {
            Ok(batch) if batch.is_silent() => return respond::empty(StatusCode::ACCEPTED),
            Ok(batch) => batch,
            Err(answer) => return reply(answer),
        };
        let (number, stream) = session.open_stream();
        let task = Arc::clone(&stream);
        let streaming = head.accepted.events;
        let messages = Arc::clone(if streaming {
            &stream
        } else {
            &session.standalone
        });
        self.edge.tracker.spawn(async move {
            let sink = SessionSink::Stream(Arc::clone(&messages));
            // On a stream of its own, progress comes before the answers.
            let progress_of = (!streaming).then_some(number);
            let answers = batch.run(&sink, progress_of).await;
            messages.finish_progress(number);
            task.end(answers.map(|message| EncodedResponse::new(200, message)));
        });
        let wait = streaming.then_some(self.options.stream_after);
        let beginning = self.beginning(&session, number, &stream, wait).await;
        beginning.unwrap_or_else(|| respond::empty(StatusCode::ACCEPTED))
    }

    fn refusal(&self, head: &Head<'_>, id: Option<&Id>, fault: &Fault) -> EncodedResponse {
        // A missing version or metadata, and an unknown version, are errors of the stateless era.
        let revision = match fault {
            Fault::MissingMeta(_) | Fault::UnsupportedVersion { .. } => Revision::NEWEST_STATELESS,
            _ => head.spoken(),
        };
        match id {
            Some(id) => self.edge.encoder(revision).error(id, fault),
            None => anonymous_error(revision, fault),
        }
    }

    fn encoder(&self, head: &Head<'_>) -> Arc<ResponseEncoder> {
        self.edge.encoder(head.spoken())
    }
}

/// Waits for the first message of a stream.
struct Waiting<'a>(&'a EventStream);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}

/// Answers with JSON, and drops the other messages of the exchange.
async fn answer_without_stream(mut exchange: Exchange) -> Response<Body> {
    if matches!(exchange, Exchange::Listen(_)) {
        let text = "a subscription is answered with text/event-stream only\n";
        return respond::text(StatusCode::NOT_ACCEPTABLE, text);
    }
    loop {
        if let Output::Answer(answer) = exchange.next().await {
            return reply(answer);
        }
    }
}
