//! MCP over HTTP: Streamable HTTP of both eras on one endpoint, and, where asked for, the HTTP+SSE
//! of 2024-11-05 beside it.

mod access;
mod attended;
mod cors;
mod head;
mod negotiation;
mod options;
mod post;
mod sessions;
mod sse24;
mod streams;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use plexus_mcp::Era;
use plexus_service::Fault;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use access::{Access, AccessDenied, Admitted};
pub use options::{HttpOptions, SsePaths};

use crate::edge::Edge;
use crate::net::{self, BindError, Body, Guard, Listener, respond};
use crate::patience::Patience;
use crate::render::{Answer, Message, anonymous_error};
use head::Head;
use sessions::{HttpSession, Sessions};

/// How often idle sessions and finished streams are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// An MCP server on one or more addresses, bound and ready to run.
#[derive(Debug)]
pub struct HttpServer {
    listener: Listener,
    endpoint: Box<Endpoint>,
}

impl HttpServer {
    /// Binds `addresses`. Nothing is served before [`HttpServer::run`].
    ///
    /// # Errors
    /// An address cannot be bound.
    pub async fn bind(
        edge: Arc<Edge>,
        addresses: &[SocketAddr],
        options: HttpOptions,
    ) -> Result<Self, BindError> {
        let listener = Listener::bind(addresses).await?;
        let mut guard = Guard::new(listener.addresses());
        for host in &options.allowed_hosts {
            guard = guard.allow_host(host.clone());
        }
        for origin in &options.allowed_origins {
            guard = guard.allow_origin(origin.clone());
        }
        let sessions = Sessions::new(&options);
        let endpoint = Box::new(Endpoint {
            edge,
            guard,
            sessions,
            access: None,
            anonymous: Admitted::anonymous(),
            patience: Patience::new(options.stream_after),
            options,
        });
        Ok(Self { listener, endpoint })
    }

    /// The same, which lets in only whom `access` admits. Without it everybody is let in, so that the
    /// addresses must be ones that only the right people reach.
    #[must_use]
    pub fn admitting(mut self, access: Arc<dyn Access>) -> Self {
        self.endpoint.access = Some(access);
        self
    }

    /// The bound addresses, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.listener.addresses()
    }

    /// The path of the MCP endpoint.
    pub fn path(&self) -> &str {
        &self.endpoint.options.path
    }

    /// Serves until the edge is shut down, then drains.
    pub async fn run(self) {
        let Self { listener, endpoint } = self;
        let endpoint: Arc<Endpoint> = endpoint.into();
        let housekeeping = TaskTracker::new();
        let shutdown = endpoint.edge.shutdown.clone();
        let keeper = Arc::clone(&endpoint);
        housekeeping.spawn(
            shutdown
                .clone()
                .run_until_cancelled_owned(async move { keeper.keep_house().await }),
        );
        let keeper = Arc::clone(&endpoint);
        let drained = CancellationToken::new();
        let over = drained.clone();
        housekeeping.spawn(async move { keeper.patience.keep(&over).await });
        let limits = endpoint.options.connections.clone();
        let serving = Arc::clone(&endpoint);
        let handler = move |request, _connection| serving.handle(request);
        net::serve(listener, handler, &limits, &shutdown).await;
        endpoint.sessions.end_all();
        drained.cancel();
        housekeeping.close();
        housekeeping.wait().await;
    }
}

/// What answers HTTP requests.
#[derive(Debug)]
struct Endpoint {
    edge: Arc<Edge>,
    guard: Guard,
    sessions: Sessions,
    /// Who is let in; everybody, if nobody says so.
    access: Option<Arc<dyn Access>>,
    /// Every caller, where nobody is asked who it is.
    anonymous: Admitted,
    /// How long an answer is waited for before the response begins as a stream.
    patience: Patience,
    options: HttpOptions,
}

impl Endpoint {
    /// Answers a request. A future is copied with all the room that it may ever need: so what few
    /// requests wait for is boxed, here and below, and nothing is kept twice.
    fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + use<> {
        let endpoint = Arc::clone(self);
        let (head, body) = request.into_parts();
        async move {
            if let Err(refusal) = endpoint.guard.check(&head.uri, &head.headers) {
                tracing::warn!(%refusal, "refused a request");
                return refusal.to_response();
            }
            let response =
                if head.method == Method::POST && head.uri.path() == endpoint.options.path {
                    endpoint.post(&head, body).await
                } else {
                    Box::pin(endpoint.route(&head, body)).await
                };
            cors::allow(response, head.headers.get(header::ORIGIN))
        }
    }

    /// Answers all but the messages to the endpoint.
    async fn route(self: &Arc<Self>, head: &Parts, body: Incoming) -> Response<Body> {
        if head.method == Method::OPTIONS {
            return cors::preflight(&head.headers);
        }
        let path = head.uri.path();
        if let Some(sse) = &self.options.sse {
            if path == sse.stream {
                return self.sse_stream(head).await;
            }
            if path == sse.messages {
                return self.sse_message(head, body).await;
            }
        }
        if path == self.options.path {
            return self.endpoint(head).await;
        }
        match path {
            // Some clients look here before they connect.
            "/health" => respond::json(StatusCode::OK, r#"{"status":"ok"}"#.into()),
            _ => match self.document(head) {
                Some(document) => document,
                None => respond::text(
                    StatusCode::NOT_FOUND,
                    &format!("nothing here; the MCP endpoint is {}\n", self.options.path),
                ),
            },
        }
    }

    /// Answers what is sent to the endpoint and is no message.
    async fn endpoint(self: &Arc<Self>, head: &Parts) -> Response<Body> {
        if ![Method::GET, Method::DELETE, Method::HEAD].contains(&head.method) {
            return respond::method_not_allowed("POST, GET, DELETE");
        }
        let caller = match self.admit(head).await {
            Ok(caller) => caller,
            Err(refusal) => return refusal,
        };
        match head.method {
            Method::GET => self.get(&Head::read(&head.headers, &caller)),
            Method::DELETE => self.delete(&Head::read(&head.headers, &caller)),
            _ => respond::empty(StatusCode::OK),
        }
    }

    /// Who sends a request, if they are let in.
    async fn admit(&self, head: &Parts) -> Result<Admitted, Response<Body>> {
        let Some(access) = &self.access else {
            return Ok(self.anonymous.clone());
        };
        access.admit(head).await.map_err(|denied| {
            tracing::debug!(status = %denied.status, reason = %denied.text, "let nobody in");
            denied.into_response()
        })
    }

    /// What says how to be let in.
    fn document(&self, head: &Parts) -> Option<Response<Body>> {
        let access = self.access.as_ref()?;
        let document = access.document(head.uri.path())?;
        Some(match head.method {
            Method::GET | Method::HEAD => respond::json(StatusCode::OK, document),
            _ => respond::method_not_allowed("GET"),
        })
    }

    /// The legacy stream for what belongs to no request, or one that is resumed.
    fn get(self: &Arc<Self>, head: &Head<'_>) -> Response<Body> {
        if !self.serves_handshake() || head.session.is_none() || head.speaks_stateless() {
            return respond::method_not_allowed("POST");
        }
        let session = match self.session(head) {
            Ok(session) => session,
            Err(answer) => return reply(answer),
        };
        if !head.accepted.events {
            return respond::text(
                StatusCode::NOT_ACCEPTABLE,
                "GET answers with text/event-stream; send an Accept header that allows it\n",
            );
        }
        streams::resume(self, &session, head.last_event)
    }

    fn delete(&self, head: &Head<'_>) -> Response<Body> {
        if !self.serves_handshake() || head.session.is_none() || head.speaks_stateless() {
            return respond::method_not_allowed("POST");
        }
        match self.session(head) {
            Ok(session) => {
                self.sessions.remove(&session);
                respond::empty(StatusCode::NO_CONTENT)
            }
            Err(answer) => reply(answer),
        }
    }

    fn serves_handshake(&self) -> bool {
        self.edge.options.served.includes(Era::Handshake)
    }

    /// The session of the caller that the request names; who names an unknown one, or somebody else's,
    /// is told to begin anew (HTTPL-20, SEC-03).
    fn session(&self, head: &Head<'_>) -> Result<Arc<HttpSession>, Answer> {
        let principal = &head.caller.principal;
        let named = head.session.map(HeaderValue::as_bytes);
        if let Some(session) = named.and_then(|id| self.sessions.get(id, principal)) {
            return Ok(session);
        }
        let text = "unknown or expired session; send initialize again, without a session id";
        let fault = Fault::InvalidRequest(text.to_owned());
        Err(Answer {
            status: 404,
            ..anonymous_error(head.spoken(), &fault)
        })
    }

    /// Tells all sessions which lists changed, and ends those that nobody uses.
    async fn keep_house(&self) {
        let mut catalogue = self.edge.watch_catalogue();
        catalogue.mark_unchanged();
        let mut sweep = tokio::time::interval(SWEEP.min(self.options.session_idle));
        loop {
            tokio::select! {
                changed = catalogue.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    for session in self.sessions.all() {
                        session.core.announce();
                    }
                }
                _ = sweep.tick() => self.sessions.sweep(),
            }
        }
    }
}

fn reply(answer: Answer) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match answer.message {
        Message::Whole(message) => respond::json(status, message),
        Message::Parts(parts) => respond::json_in_parts(status, parts),
    }
}
