//! The HTTP client under the transports: TLS, proxies, limits, bodies and event streams.
//!
//! It speaks HTTP/1.1 and adds nothing to a request but what HTTP demands. It follows no redirect,
//! since a request may carry credentials that are meant for one origin only; it keeps no cookies
//! and asks for no compression.

mod body;
mod connect;
mod connection;
mod error;
mod options;
mod origin;
mod pool;
mod proxy;
mod resolve;
mod response;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use tower_service::Service;

use self::body::ResponseBody;
use self::connect::Connector;
use self::connection::Connection;
use self::pool::Pool;
use self::tls::Tls;

pub use self::error::{Cause, HttpClientError, HttpError, Stage};
pub use self::options::HttpClientOptions;
pub use self::origin::Origin;
pub use self::proxy::ProxyRules;
pub use self::response::{EventSource, HttpResponse};

/// Sends HTTP requests.
///
/// Cheap to clone; clones share the options and the pool of connections. Connections that are in
/// nobody's use close when the last clone is dropped.
#[derive(Clone)]
pub struct HttpClient {
    connector: Connector,
    pool: Arc<Pool>,
    options: Arc<HttpClientOptions>,
}

impl HttpClient {
    /// A client with these options.
    pub fn new(options: &HttpClientOptions) -> Result<Self, HttpClientError> {
        let tls = Tls::new(options.extra_roots.as_deref())?;
        Ok(Self {
            connector: Connector::new(options, tls),
            pool: Arc::default(),
            options: Arc::new(options.clone()),
        })
    }

    /// Sends a request and waits for the head of the answer, whatever its status is.
    ///
    /// Dropping the future closes the connection, which tells the server that nobody waits any
    /// more. Later the same is true of the [`HttpResponse`] and what it is turned into.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<HttpResponse, HttpError> {
        let origin = Origin::of(request.uri())?;
        if let Some(authorization) = self.options.proxies.authorization(request.uri()) {
            request
                .headers_mut()
                .entry(PROXY_AUTHORIZATION)
                .or_insert(authorization);
        }
        // Boxed, since it is part of every future that leads to the network.
        let answer = Box::pin(self.exchange(&origin, request.map(Full::new)));
        let answer = match self.options.headers_timeout {
            None => answer.await,
            Some(after) => match tokio::time::timeout(after, answer).await {
                Ok(answer) => answer,
                Err(_elapsed) => Err(HttpError::Timeout {
                    origin: origin.clone(),
                    stage: Stage::Answer,
                    after,
                }),
            },
        };
        Ok(HttpResponse::new(answer?, origin, &self.options))
    }

    /// Sends a request on a connection that is there, or on a new one. It is sent again only if
    /// nothing of it was sent, because a connection had closed while nobody used it.
    async fn exchange(
        &self,
        origin: &Origin,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let url = request.uri().clone();
        let headers = request.headers_mut();
        headers.entry(HOST).or_insert_with(|| host(&url));
        loop {
            let kept = self.pool.take(origin);
            let is_new = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                // Boxed, as it is large and seldom needed.
                None => Box::pin(self.connect(origin, &url)).await?,
            };
            *request.uri_mut() = if connection.is_proxied {
                url.clone()
            } else {
                path_of(&url)
            };
            match connection.send(request).await {
                Ok(response) => {
                    let pool = &self.pool;
                    return Ok(
                        response.map(|body| ResponseBody::new(body, connection, pool, origin))
                    );
                }
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(HttpError::broken(origin.clone(), refused.into_error())),
                },
            }
        }
    }

    async fn connect(&self, origin: &Origin, url: &Uri) -> Result<Connection, HttpError> {
        let mut connector = self.connector.clone();
        let stream = connector.call(url.clone()).await;
        let stream = stream.map_err(|failure| {
            HttpError::unconnected(origin.clone(), failure, self.options.connect_timeout)
        })?;
        let connection = Connection::new(stream).await;
        connection.map_err(|error| HttpError::broken(origin.clone(), error))
    }
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What a request to `url` says in its `Host` header.
fn host(url: &Uri) -> HeaderValue {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let default = match url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => ":443",
        _ => ":80",
    };
    let host = authority.strip_suffix(default).unwrap_or(authority);
    HeaderValue::from_str(host).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// What a request to `url` asks for, if it goes to where that is.
fn path_of(url: &Uri) -> Uri {
    let path = url.path_and_query().cloned();
    Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

#[cfg(test)]
mod tests;
