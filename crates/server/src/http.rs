//! MCP over HTTP: Streamable HTTP of both eras on one endpoint, and, where asked for, the HTTP+SSE
//! of 2024-11-05 beside it.

mod access;
mod cors;
mod eviction_order;
mod head;
mod legacy_request;
mod native;
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
use plexus_mcp_core::Fault;
use plexus_mcp_core::wire_log::{Direction, log_head, log_message};
use plexus_mcp_protocol::Era;
use tokio_util::task::TaskTracker;

pub use access::{Access, AccessDenied};
pub use options::{HttpOptions, SsePaths};

use crate::caller::CallerIdentity;
use crate::edge::Edge;
use crate::encoder::{EncodedResponse, anonymous_error};
use crate::net::{self, BindError, Body, Guard, Listener, respond};
use head::Head;
use sessions::{HttpSession, Sessions};

/// Interval of the search for idle sessions and finished streams.
const SESSION_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// How often the credentials of open streams are checked.
const REVALIDATION_INTERVAL: Duration = Duration::from_secs(3);

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
            options,
        });
        Ok(Self { listener, endpoint })
    }

    /// Requires authentication by `access`. Without it every caller is accepted, so the addresses must
    /// be reachable by trusted callers only.
    ///
    /// On loopback addresses, web pages that other programs of this machine serve may then send
    /// requests, because they need credentials like every caller.
    #[must_use]
    pub fn admitting(mut self, access: Arc<dyn Access>) -> Self {
        self.endpoint.access = Some(access);
        self.endpoint.guard.trust_local_pages();
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
        let limits = endpoint.options.connections.within_descriptors();
        let serving = Arc::clone(&endpoint);
        let handler = move |request, _connection| Arc::clone(&serving).handle(request);
        net::serve(listener, handler, &limits, &shutdown).await;
        endpoint.sessions.end_all();
        housekeeping.close();
        housekeeping.wait().await;
    }
}

/// The handler of HTTP requests.
#[derive(Debug)]
struct Endpoint {
    edge: Arc<Edge>,
    guard: Guard,
    sessions: Sessions,
    /// Authenticates callers; `None` accepts all of them.
    access: Option<Arc<dyn Access>>,
    options: HttpOptions,
}

impl Endpoint {
    /// Answers an HTTP request.
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        log_head(
            Direction::FromClient,
            format_args!("{} {}", head.method, head.uri.path()),
            &head.headers,
        );
        if let Err(refusal) = self.guard.check(&head.uri, &head.headers) {
            tracing::warn!(%refusal, "refused a request");
            return refusal.to_response();
        }
        let response = self.route(&head, body).await;
        let response = cors::allow(response, head.headers.get(header::ORIGIN));
        log_head(Direction::ToClient, response.status(), response.headers());
        match &self.access {
            Some(access) if response.body().is_stream() => {
                let invalid = until_invalid(Arc::clone(access), head);
                response.map(|body| body.until(invalid))
            }
            _ => response,
        }
    }

    /// Answers a request that passed the guard.
    async fn route(self: &Arc<Self>, head: &Parts, body: Incoming) -> Response<Body> {
        if head.method == Method::OPTIONS {
            return self.unadmitted(cors::preflight(&head.headers));
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
            return match head.method {
                Method::POST => self.post(head, body).await,
                _ => self.endpoint(head).await,
            };
        }
        if let Some(native) = self.native_path(path) {
            return self.native(head, native, body).await;
        }
        self.unadmitted(match path {
            // Some clients look here before they connect.
            "/health" => respond::json(StatusCode::OK, r#"{"status":"ok"}"#.into()),
            _ => match self.document(head) {
                Some(document) => document,
                None => respond::text(
                    StatusCode::NOT_FOUND,
                    &format!("nothing here; the MCP endpoint is {}\n", self.options.path),
                ),
            },
        })
    }

    /// Answers a request to the MCP endpoint with a method other than POST.
    async fn endpoint(self: &Arc<Self>, head: &Parts) -> Response<Body> {
        if ![Method::GET, Method::DELETE, Method::HEAD].contains(&head.method) {
            return self.unadmitted(respond::method_not_allowed("POST, GET, DELETE"));
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

    /// Authenticates the caller of a request.
    async fn admit(&self, head: &Parts) -> Result<CallerIdentity, Response<Body>> {
        let Some(access) = &self.access else {
            return Ok(CallerIdentity::anonymous());
        };
        access.admit(head).await.map_err(|denied| {
            tracing::debug!(status = %denied.status, reason = %denied.text, "refused a caller");
            denied.into_response()
        })
    }

    /// A response to a caller that was not authenticated. Where callers must be, it is the last one on
    /// its connection, so that strangers cannot occupy connections.
    fn unadmitted(&self, response: Response<Body>) -> Response<Body> {
        match self.access {
            Some(_) => respond::closing(response),
            None => response,
        }
    }

    /// The document that describes how to authenticate.
    fn document(&self, head: &Parts) -> Option<Response<Body>> {
        let access = self.access.as_ref()?;
        let document = access.document(head.uri.path())?;
        Some(match head.method {
            Method::GET | Method::HEAD => respond::json(StatusCode::OK, document),
            _ => respond::method_not_allowed("GET"),
        })
    }

    /// The legacy stream for messages that belong to no request, or one that is resumed.
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

    /// The session that the request names. An unknown id, or one of another principal, is answered
    /// 404, so that the client initializes again (HTTPL-20, SEC-03).
    fn session(&self, head: &Head<'_>) -> Result<Arc<HttpSession>, EncodedResponse> {
        let principal = &head.caller.principal;
        let named = head.session.map(HeaderValue::as_bytes);
        if let Some(session) = named.and_then(|id| self.sessions.get(id, principal)) {
            return Ok(session);
        }
        let text = "unknown or expired session; send initialize again, without a session id";
        let fault = Fault::InvalidRequest(text.to_owned());
        Err(EncodedResponse {
            status: 404,
            ..anonymous_error(head.spoken(), &fault)
        })
    }

    /// Announces list changes to all sessions, and ends idle sessions.
    async fn keep_house(&self) {
        let mut catalogue = self.edge.watch_catalogue();
        catalogue.mark_unchanged();
        let mut sweep =
            tokio::time::interval(SESSION_SWEEP_INTERVAL.min(self.options.session_idle));
        loop {
            tokio::select! {
                changed = catalogue.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.sessions.announce().await;
                }
                _ = sweep.tick() => self.sessions.sweep().await,
            }
        }
    }
}

/// Completes when the credentials of the request with this head are no longer valid.
async fn until_invalid(access: Arc<dyn Access>, head: Parts) {
    loop {
        tokio::time::sleep(REVALIDATION_INTERVAL).await;
        if !access.is_still_valid(&head).await {
            tracing::info!("ended a stream whose credentials are no longer valid");
            return;
        }
    }
}

fn reply(answer: EncodedResponse) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    log_message(Direction::ToClient, &answer.message);
    respond::json(status, answer.message)
}
