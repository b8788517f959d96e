//! POST: one message, or a batch of an old session.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Incoming as IncomingBody;
use plexus_mcp::Revision;
use plexus_mcp::classify::{self, Facts, Kind, Route};
use plexus_mcp::lifecycle::Rules;
use plexus_service::Fault;
use plexus_wire::{self as wire, Id, Incoming, Message};
use tokio::time::timeout;

use super::access::Admitted;
use super::attended::Attended;
use super::head::{Head, SESSION_HEADER};
use super::sessions::HttpSession;
use super::{Endpoint, reply, streams};
use crate::asked::Asked;
use crate::batch;
use crate::event_stream::Beginning;
use crate::exchange::{Exchange, Output};
use crate::net::{self, Body, BodyLimits, ReadError, respond};
use crate::outlet::Outlet;
use crate::render::{Answer, Voice, anonymous_error};
use crate::stateless;
use crate::stdio::decode_fault;

/// A response, which most are at once.
enum Responding<'a> {
    Now(Response<Body>),
    Later(BoxFuture<'a, Response<Body>>),
}

/// Nothing came in the time in which an answer is waited for before the response begins.
struct Impatience;

impl From<Response<Body>> for Responding<'_> {
    fn from(response: Response<Body>) -> Self {
        Self::Now(response)
    }
}

impl From<Answer> for Responding<'_> {
    fn from(answer: Answer) -> Self {
        Self::Now(reply(answer))
    }
}

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
        let responding = match self.decode(head, body).await {
            Ok(incoming) => self.answer(head, incoming),
            Err(response) => return response,
        };
        match responding {
            Responding::Now(response) => response,
            Responding::Later(response) => response.await,
        }
    }

    fn answer<'a>(self: &'a Arc<Self>, head: &'a Head<'a>, incoming: Incoming) -> Responding<'a> {
        match incoming {
            Incoming::Batch(messages) => Responding::Later(Box::pin(self.batch(head, messages))),
            Incoming::Single(Ok(message)) => self.message(head, message),
            Incoming::Single(Err(malformed)) => {
                let fault = Fault::InvalidRequest(malformed.reason.to_string());
                let refusal = match &malformed.id {
                    Some(id) => self.voice(head).error(id, &fault),
                    None => anonymous_error(head.spoken(), &fault),
                };
                refusal.into()
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
        message
            .decode(&limits)
            .map_err(|error| reply(anonymous_error(head.spoken(), &decode_fault(error))))
    }

    fn message<'a>(self: &'a Arc<Self>, head: &Head<'_>, message: Message) -> Responding<'a> {
        let request = match message {
            Message::Request(request) => request,
            other => return self.one_way(head, other).into(),
        };
        let asked = match Asked::read(request) {
            Ok(asked) => asked,
            Err((id, Fault::InvalidParams(text))) if head.speaks_stateless() => {
                let fault = Fault::MissingMeta(text);
                return self.voice(head).error(&id, &fault).into();
            }
            Err((id, fault)) => return self.voice(head).error(&id, &fault).into(),
        };
        let facts = Facts {
            kind: Kind::Request(&asked.method),
            requested: asked.meta.handshake_version.as_deref(),
            version_in_meta: asked.meta.protocol_version.is_some(),
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        let route = match classify::http(&facts, self.edge.options.served) {
            Ok(route) => route,
            Err(fault) => return self.refusal(head, Some(&asked.id), &fault).into(),
        };
        match route {
            Route::Ignore => respond::empty(StatusCode::ACCEPTED).into(),
            Route::Stateless => {
                let caller = stateless::Caller {
                    admitted: head.caller.clone(),
                    presence: None,
                };
                let exchange = stateless::begin(&self.edge, asked, Some(head.headers), caller);
                self.answer_stateless(head, exchange)
            }
            Route::Handshake => match self.session(head) {
                // A second handshake: the session itself refuses it.
                Ok(session) => self.in_session(head, session, asked),
                Err(_) => self.open_session(asked, head.caller).into(),
            },
            Route::Session => match self.session(head) {
                Ok(session) => self.in_session(head, session, asked),
                Err(answer) => answer.into(),
            },
        }
    }

    /// Takes note of a message that is not answered.
    fn one_way(&self, head: &Head<'_>, message: Message) -> Response<Body> {
        let kind = match &message {
            Message::Response(_) => Kind::Response,
            _ => Kind::Notification,
        };
        let facts = Facts {
            kind,
            requested: None,
            version_in_meta: false,
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        match classify::http(&facts, self.edge.options.served) {
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
    fn in_session<'a>(
        self: &'a Arc<Self>,
        head: &Head<'_>,
        session: Arc<HttpSession>,
        asked: Asked,
    ) -> Responding<'a> {
        let id = asked.id.clone();
        let (exchange, ticket) = session.core.begin(asked, Some(head.caller));
        if let Exchange::Answered(answer) = exchange {
            return answer.into();
        }
        let streaming = head.accepted.events;
        let mut request = Attended::new(self, session, streaming, exchange, ticket);
        // Most requests are answered at once, and no clock is needed for them.
        let first = request.first().now_or_never();
        if let Some(Some(Output::Answer(answer))) = first {
            return answer.into();
        }
        Responding::Later(Box::pin(async move {
            let first = match first {
                Some(first) => Ok(first),
                None => self.first_in_session(&mut request).await,
            };
            self.go_on_in_session(&id, request, first)
        }))
    }

    /// What comes first, if it comes before the patience with it ends.
    async fn first_in_session(
        &self,
        request: &mut Attended<'_>,
    ) -> Result<Option<Output>, Impatience> {
        if !request.is_streaming() {
            return Ok(request.first().await);
        }
        let first = match streams::release_after(self, request.session()) {
            Some(release) => {
                let patience = release.min(self.options.stream_after);
                timeout(patience, request.first()).await.ok()
            }
            None => self.patiently(request.first()).await,
        };
        first.ok_or(Impatience)
    }

    fn go_on_in_session(
        self: &Arc<Self>,
        id: &Id,
        request: Attended<'_>,
        first: Result<Option<Output>, Impatience>,
    ) -> Response<Body> {
        let session = Arc::clone(request.session());
        let stream = match first {
            Ok(Some(Output::Answer(answer))) => return reply(answer),
            Ok(Some(message)) => request.leave(Some(message)),
            Ok(None) => None,
            Err(Impatience) => request.leave(None),
        };
        match stream {
            Some((number, stream)) => streams::open(self, &session, number, &stream),
            // C08: over HTTP something must be said.
            None => reply(session.core.refuse(id, &Fault::Cancelled)),
        }
    }

    /// `initialize`: a session comes to be if the answer is no error.
    fn open_session(&self, asked: Asked, caller: &Admitted) -> Response<Body> {
        let id = asked.id.clone();
        let principal = caller.principal.clone();
        let replay = self.options.replay;
        let session = HttpSession::new(&self.edge, replay, Rules::UNORDERED, principal);
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
        if !self.sessions.add(session) {
            let fault = Fault::Busy("too many sessions are in use; try again later".to_owned());
            return reply(Answer {
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
    fn answer_stateless<'a>(&'a self, head: &Head<'_>, mut exchange: Exchange) -> Responding<'a> {
        if !head.accepted.events {
            return answer_without_stream(exchange);
        }
        // Most requests are answered at once, and no clock is needed for them.
        let first = exchange.next().now_or_never();
        if let Some(Output::Answer(answer)) = first {
            return answer.into();
        }
        Responding::Later(Box::pin(async move {
            let first = match first {
                Some(first) => Some(first),
                None => self.patiently(exchange.next()).await,
            };
            let first = match first {
                Some(Output::Answer(answer)) => return reply(answer),
                Some(Output::Notification(first) | Output::Question(first)) => Some(first),
                None => None,
            };
            streams::stateless(first, exchange, self.options.keep_alive)
        }))
    }

    /// What comes before the patience with `first` ends, if anything.
    async fn patiently<T>(&self, first: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            first = first => Some(first),
            () = self.patience.end() => None,
        }
    }

    async fn batch(
        self: &Arc<Self>,
        head: &Head<'_>,
        messages: Vec<Result<Message, wire::Malformed>>,
    ) -> Response<Body> {
        let facts = Facts {
            kind: Kind::Batch,
            requested: None,
            version_in_meta: false,
            version_header: head.version(),
            in_session: head.session.is_some(),
        };
        if let Err(fault) = classify::http(&facts, self.edge.options.served) {
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
        let (number, stream) = session.open_stream(self.options.replay);
        let task = Arc::clone(&stream);
        let streaming = head.accepted.events;
        let messages = Arc::clone(if streaming {
            &stream
        } else {
            &session.standalone
        });
        self.edge.tracker.spawn(async move {
            let answers = batch.run(&Outlet::Stream(messages)).await;
            task.end(answers.map(|message| Answer::whole(200, message)));
        });
        let beginning = stream.beginning();
        let beginning = if streaming {
            timeout(self.options.stream_after, beginning).await
        } else {
            Ok(beginning.await)
        };
        match beginning {
            Ok(Beginning::Answer(answer)) => {
                session.forget_stream(number);
                reply(answer)
            }
            Ok(Beginning::Nothing) => respond::empty(StatusCode::ACCEPTED),
            Ok(Beginning::Message) | Err(_) => streams::open(self, &session, number, &stream),
        }
    }

    fn refusal(&self, head: &Head<'_>, id: Option<&Id>, fault: &Fault) -> Answer {
        // What is missing or unknown is missing or unknown to the stateless era.
        let revision = match fault {
            Fault::MissingMeta(_) | Fault::UnsupportedVersion { .. } => Revision::NEWEST_STATELESS,
            _ => head.spoken(),
        };
        match id {
            Some(id) => self.edge.voice(revision).error(id, fault),
            None => anonymous_error(revision, fault),
        }
    }

    fn voice(&self, head: &Head<'_>) -> Arc<Voice> {
        self.edge.voice(head.spoken())
    }
}

/// Answers with JSON, whatever else there is to say.
fn answer_without_stream(mut exchange: Exchange) -> Responding<'static> {
    if matches!(exchange, Exchange::Listen(_)) {
        let text = "a subscription is answered with text/event-stream only\n";
        return respond::text(StatusCode::NOT_ACCEPTABLE, text).into();
    }
    Responding::Later(Box::pin(async move {
        loop {
            if let Output::Answer(answer) = exchange.next().await {
                return reply(answer);
            }
        }
    }))
}
