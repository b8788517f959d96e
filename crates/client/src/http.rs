//! The HTTP client under the transports: TLS, proxies, limits, bodies and event streams.
//!
//! It speaks HTTP/1.1 and adds nothing to a request but what HTTP demands. It follows no redirect,
//! since a request may carry credentials that are meant for one origin only; it keeps no cookies
//! and asks for no compression.

mod connect;
mod error;
mod options;
mod origin;
mod proxy;
mod resolve;
mod response;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::PROXY_AUTHORIZATION;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use self::connect::Connector;
use self::tls::Tls;

pub use self::error::{Cause, HttpClientError, HttpError, Stage};
pub use self::options::HttpClientOptions;
pub use self::origin::Origin;
pub use self::proxy::ProxyRules;
pub use self::response::{EventSource, HttpResponse};

/// How long a connection is kept without use. Node and uvicorn close theirs after five seconds,
/// and a request that meets such a close on its way fails without a safe retry.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// How many unused connections are kept for each origin.
const MAX_IDLE: usize = 32;

/// Sends HTTP requests.
///
/// Cheap to clone; clones share the options and the pool of connections. Connections that are in
/// nobody's use close when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    options: HttpClientOptions,
}

impl HttpClient {
    /// A client with these options.
    pub fn new(options: &HttpClientOptions) -> Result<Self, HttpClientError> {
        let tls = Tls::new(options.extra_roots.as_deref())?;
        let connector = Connector::new(options, tls);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            // It repeats only what was never taken off the queue of a connection that had closed
            // while idle: a request of which a byte may have been sent is not sent again.
            .retry_canceled_requests(true)
            .build(connector);
        Ok(Self {
            client,
            options: options.clone(),
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
        let answer = self.client.request(request.map(Full::new));
        let answer = match self.options.headers_timeout {
            None => answer.await,
            Some(after) => match tokio::time::timeout(after, answer).await {
                Ok(answer) => answer,
                Err(_elapsed) => {
                    let stage = Stage::Answer;
                    return Err(HttpError::Timeout {
                        origin,
                        stage,
                        after,
                    });
                }
            },
        };
        match answer {
            Ok(response) => Ok(HttpResponse::new(response, origin, &self.options)),
            Err(error) => Err(HttpError::from_client(
                origin,
                error,
                self.options.connect_timeout,
            )),
        }
    }
}

#[cfg(test)]
mod tests;
