//! The HTTP client of the transports: TLS, proxies, limits, bodies and event streams.
//!
//! `hyper` speaks HTTP/1.1, and HTTP/2 where a TLS server negotiates it (ALPN). The client adds to a
//! request only what HTTP requires. It does not follow redirects, because a request may carry
//! credentials that are meant for one origin. It keeps no cookies and requests no compression.

mod body;
mod connect;
mod error;
mod lost;
mod options;
mod origin;
mod proxy;
mod resolve;
mod response;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::rt::Executor;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::TokioTimer;
use plexus_mcp_core::wire_log::{Direction, log_head};
use tokio_util::task::TaskTracker;

use self::body::ResponseBody;
use self::connect::Connector;
use self::lost::OpeningConnections;
use self::tls::Tls;

pub use self::error::{Cause, HttpClientError, HttpError, Stage};
pub use self::options::HttpClientOptions;
pub use self::origin::Origin;
pub use self::proxy::ProxyRules;
pub use self::response::{EventSource, HttpResponse};

/// Idle connections are closed after this time. Node and uvicorn close theirs after five seconds,
/// and a request sent just before such a close fails without a safe retry.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The number of idle HTTP/1.1 connections that are kept for each origin.
const MAX_IDLE_CONNECTIONS_PER_ORIGIN: usize = 256;
/// The largest head of a response: status line and headers.
const MAX_RESPONSE_HEAD_BYTES: usize = 32 * 1024;
const MAX_RESPONSE_HEAD_BYTES_HTTP2: u32 = 32 * 1024;
/// An HTTP/2 connection with open requests is pinged at this interval. All requests to an origin
/// share it, so a dead one must be noticed.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);

/// Sends HTTP requests.
///
/// Cheap to clone; clones share the options and the connection pool. Idle connections are closed
/// when the last clone is dropped.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    opening: OpeningConnections,
    options: Arc<HttpClientOptions>,
}

/// Runs the connections of a client: hyper has one task for each.
#[derive(Clone, Default)]
struct TrackedExecutor(TaskTracker);

impl<F> Executor<F> for TrackedExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

impl HttpClient {
    /// A client with these options.
    pub fn new(options: &HttpClientOptions) -> Result<Self, HttpClientError> {
        let tls = Tls::new(options.extra_roots.as_deref())?;
        let opening = OpeningConnections::new(options.connect_timeout);
        // A request is sent again only if its pooled connection was found closed before any of the
        // request was written (`retry_canceled_requests`, on by default). So a request that may have
        // reached the server is never sent twice.
        let client = Client::builder(TrackedExecutor::default())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS_PER_ORIGIN)
            .http1_max_buf_size(MAX_RESPONSE_HEAD_BYTES)
            .http2_max_header_list_size(MAX_RESPONSE_HEAD_BYTES_HTTP2)
            .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
            .build(Connector::new(options, tls, opening.clone()));
        Ok(Self {
            client,
            opening,
            options: Arc::new(options.clone()),
        })
    }

    /// Sends a request and waits for the head of the response, whatever its status is.
    ///
    /// Dropping the future cancels the request: an HTTP/1.1 connection is closed, an HTTP/2 stream is
    /// reset. Later the same is true of the [`HttpResponse`] and what it is turned into.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<HttpResponse, HttpError> {
        let origin = Origin::of(request.uri())?;
        self.complete_headers(&mut request);
        log_head(
            Direction::ToServer,
            format_args!("{} {origin}{}", request.method(), request.uri().path()),
            request.headers(),
        );
        let mut request = request.map(Full::new);
        let connection = capture_connection(&mut request);
        let sending = self.client.request(request);
        // Boxed, because few requests get further than its first wait.
        let lost = Box::pin(lost::lost(connection, self.opening.clone()));
        let sending = lost::unless_lost(sending, lost);
        let sent = match self.options.headers_timeout {
            None => sending.await,
            Some(after) => match tokio::time::timeout(after, sending).await {
                Ok(sent) => sent,
                Err(_elapsed) => {
                    return Err(HttpError::Timeout {
                        origin,
                        stage: Stage::Answer,
                        after,
                    });
                }
            },
        };
        match sent {
            Err(lost) => Err(HttpError::broken(origin, lost)),
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                log_head(Direction::FromServer, head.status, &head.headers);
                let body = ResponseBody::new(body);
                Ok(HttpResponse::new(head, body, origin, &self.options))
            }
            Ok(Err(error)) => Err(HttpError::unsent_or_broken(
                origin,
                error,
                self.options.connect_timeout,
            )),
        }
    }

    /// Adds the proxy's credentials, and replaces the caller's framing headers by correct ones.
    fn complete_headers(&self, request: &mut Request<Bytes>) {
        let authorization = self.options.proxies.authorization(request.uri());
        let length = request.body().len();
        let is_post = request.method() == Method::POST;
        let headers = request.headers_mut();
        if let Some(authorization) = authorization {
            headers.entry(PROXY_AUTHORIZATION).or_insert(authorization);
        }
        headers.remove(TRANSFER_ENCODING);
        headers.remove(CONTENT_LENGTH);
        // hyper states the length of a body, but leaves it out where there is none.
        if length == 0 && is_post {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
