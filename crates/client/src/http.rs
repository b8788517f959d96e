//! The HTTP client under the transports: TLS, proxies, limits, bodies and event streams.
//!
//! It speaks HTTP/1.1 and adds nothing to a request but what HTTP demands. It follows no redirect,
//! since a request may carry credentials that are meant for one origin only; it keeps no cookies
//! and asks for no compression.

mod body;
mod connect;
mod connection;
mod error;
mod framing;
mod head;
mod options;
mod origin;
mod pool;
mod proxy;
mod resolve;
mod response;
mod template;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use tower_service::Service;

use self::body::ResponseBody;
use self::connect::Connector;
use self::connection::Connection;
use self::head::Head;
use self::pool::Pool;
use self::tls::Tls;

pub use self::error::{Cause, HttpClientError, HttpError, Stage};
pub use self::options::HttpClientOptions;
pub use self::origin::Origin;
pub use self::proxy::ProxyRules;
pub use self::response::{EventSource, HttpResponse};
pub(crate) use self::template::Template;

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
    pub async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let template = self.template(head.method, &head.uri, head.headers)?;
        // Boxed, since it is part of every future that leads to the network.
        Box::pin(self.send_as(&template, &[], body)).await
    }

    /// The head of requests to `url`, made once for all of them.
    pub(crate) fn template(
        &self,
        method: Method,
        url: &Uri,
        headers: HeaderMap,
    ) -> Result<Template, HttpError> {
        Template::new(method, url, headers, &self.options.proxies)
    }

    /// The same as [`HttpClient::send`] for a request whose head is made of a template, with `more`
    /// headers.
    pub(crate) async fn send_as(
        &self,
        template: &Template,
        more: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let origin = &template.origin;
        let answer = self.exchange(template, more, body);
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
        let (head, connection) = answer?;
        let body = ResponseBody::new(connection, &self.pool, origin);
        let origin = origin.clone();
        Ok(HttpResponse::new(head, body, origin, &self.options))
    }

    /// Sends a request on a connection that is there, or on a new one. It is sent again only if
    /// nothing of it was sent, because a connection had closed while nobody used it.
    async fn exchange(
        &self,
        template: &Template,
        more: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<(Head, Box<Connection>), HttpError> {
        let origin = &template.origin;
        loop {
            let kept = self.pool.take(origin);
            let is_new = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                // Boxed, as it is large and seldom needed.
                None => Box::pin(self.connect(origin, &template.url)).await?,
            };
            let (head, body) = template.fill(more, body.clone(), connection.is_proxied);
            match connection.send(head, body).await {
                Ok(head) => return Ok((head, connection)),
                Err(refused) if refused.is_unsent && !is_new => {}
                Err(refused) => return Err(HttpError::broken(origin.clone(), refused.breach)),
            }
        }
    }

    async fn connect(&self, origin: &Origin, url: &Uri) -> Result<Box<Connection>, HttpError> {
        let mut connector = self.connector.clone();
        let stream = connector.call(url.clone()).await;
        let stream = stream.map_err(|failure| {
            HttpError::unconnected(origin.clone(), failure, self.options.connect_timeout)
        })?;
        Ok(Connection::new(stream))
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
