//! The native view over HTTP: a tool call is a POST to `/native`, and its events are the response.
//!
//! The messages are those of the native view on pipes. A call has a session of its own, which lasts
//! as long as its stream: a closed stream cancels the call. The first event names the address to
//! which the client sends the answers to questions of this call.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming as IncomingBody;
use plexus_mcp_core::Fault;
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use plexus_mcp_wire::sse::Frame;
use plexus_mcp_wire::{Incoming, Message, Request};

use super::head::Head;
use super::sessions::HttpSession;
use super::{Endpoint, reply, streams};
use crate::encoder::{EncodedResponse, anonymous_error};
use crate::event_stream::{Read, Reader};
use crate::exchange::{Exchange, Output};
use crate::net::{Body, respond};
use crate::session::InFlightGuard;

/// The path of calls. The answers to the questions of a call are sent to a path below it.
const PATH: &str = "/native";

/// The part of the native view that a path names.
pub(super) enum NativePath<'a> {
    /// A call is made here.
    Calls,
    /// Questions of the call with this id are answered here.
    Answers(&'a str),
}

/// The stream of one call. Its end is the end of the call.
struct NativeStream {
    endpoint: Arc<Endpoint>,
    session: Arc<HttpSession>,
    exchange: Option<Exchange>,
    /// Messages that belong to no request, such as the withdrawal of a question.
    reader: Reader,
    /// Sent before everything else.
    address: Option<Bytes>,
    first: Option<Bytes>,
    _in_flight: InFlightGuard,
}

impl Drop for NativeStream {
    fn drop(&mut self) {
        self.endpoint.sessions.remove(&self.session);
    }
}

impl Endpoint {
    /// The part of the native view at `path`; `None` if there is none, or the view is not served.
    pub(super) fn native_path<'a>(&self, path: &'a str) -> Option<NativePath<'a>> {
        let rest = path.strip_prefix(PATH)?;
        if !self.edge.options.native {
            return None;
        }
        match rest.strip_prefix('/') {
            None => rest.is_empty().then_some(NativePath::Calls),
            Some(id) => Some(NativePath::Answers(id)),
        }
    }

    pub(super) async fn native(
        self: &Arc<Self>,
        parts: &Parts,
        path: NativePath<'_>,
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
        match path {
            NativePath::Calls if !head.accepted.events => {
                let text = "a call is answered with text/event-stream; send an Accept header that allows it\n";
                respond::text(StatusCode::NOT_ACCEPTABLE, text)
            }
            NativePath::Calls => match self.decode(&head, body).await {
                Ok(Incoming::Single(Ok(Message::Request(request)))) => {
                    self.native_call(&head, request).await
                }
                Ok(_) => {
                    let text = format!("a call is one JSON-RPC request, sent to {PATH}");
                    reply(anonymous_error(head.spoken(), &Fault::InvalidRequest(text)))
                }
                Err(response) => response,
            },
            NativePath::Answers(id) => self.native_answer(&head, id, body).await,
        }
    }

    /// Answers with a stream, or with an error if the call cannot begin.
    async fn native_call(self: &Arc<Self>, head: &Head<'_>, request: Request) -> Response<Body> {
        let principal = head.caller.principal.clone();
        let rules = LifecycleRules::UNGATED;
        let session = match self.sessions.open(&self.edge, rules, principal) {
            Ok(session) => session,
            Err(error) => {
                tracing::error!(%error, "no randomness for the id of a stream");
                return respond::empty(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        let asked = match session.core.read(request) {
            Ok(asked) => asked,
            Err(answer) => return reply(answer),
        };
        if let Err(fault) = session.core.prepare_native_call(&asked) {
            return reply(session.core.refuse(&asked.id, &fault));
        }
        if self.sessions.add(Arc::clone(&session)).is_err() {
            let fault = Fault::Busy("too many streams are open; try again later".to_owned());
            return reply(EncodedResponse {
                status: 503,
                ..session.core.refuse(&asked.id, &fault)
            });
        }
        let address = format!("{PATH}/{}", session.id);
        let (exchange, in_flight) = session.core.begin(asked, Some(head.caller));
        let mut call = NativeStream {
            endpoint: Arc::clone(self),
            reader: session.standalone.read(Some(0)),
            session,
            exchange: None,
            address: Some(streams::frame(&Frame {
                id: None,
                event: Some("endpoint"),
                retry: None,
                data: Some(address.as_bytes()),
            })),
            first: None,
            _in_flight: in_flight,
        };
        let mut exchange = exchange;
        match exchange.next().await {
            Output::Answer(answer) => return reply(answer),
            Output::Notification(first) | Output::Progress(first) | Output::Question(first) => {
                call.first = Some(first);
            }
        }
        call.exchange = Some(exchange);
        let events = stream::unfold(call, |mut call| async move {
            call.next().await.map(|event| (event, call))
        });
        respond::sse(Body::events(events, self.options.keep_alive))
    }

    /// Takes the answer to a question. A call of another principal does not exist for the caller.
    async fn native_answer(&self, head: &Head<'_>, id: &str, body: IncomingBody) -> Response<Body> {
        let Some(session) = self.sessions.get(id.as_bytes(), &head.caller.principal) else {
            let text =
                "no call is running with this address; it has ended, or its stream was closed\n";
            return respond::text(StatusCode::NOT_FOUND, text);
        };
        match self.decode(head, body).await {
            Ok(Incoming::Single(Ok(Message::Response(response)))) => {
                session.core.answered(response);
                respond::empty(StatusCode::ACCEPTED)
            }
            Ok(_) => {
                let text = "an answer to a question is one JSON-RPC response";
                let fault = Fault::InvalidRequest(text.to_owned());
                reply(anonymous_error(head.spoken(), &fault))
            }
            Err(response) => response,
        }
    }
}

impl NativeStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(address) = self.address.take() {
            return Some(address);
        }
        if let Some(first) = self.first.take() {
            return Some(streams::message(&first));
        }
        let exchange = self.exchange.as_mut()?;
        tokio::select! {
            biased;
            read = self.reader.next(None) => match read {
                Read::Message(_, message) => Some(streams::message(&message)),
                // The session was ended, and its call with it.
                Read::Silence | Read::End => None,
            },
            output = exchange.next() => match output {
                Output::Notification(message)
                | Output::Progress(message)
                | Output::Question(message) => Some(streams::message(&message)),
                Output::Answer(last) => {
                    self.exchange = None;
                    Some(streams::message(&last.message))
                }
            },
        }
    }
}
