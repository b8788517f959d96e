use std::time::Duration;

use bytes::Bytes;
use plexus_mcp_oauth::Reach;

use super::proxy::ProxyRules;

const MEBIBYTE: usize = 1024 * 1024;

/// Options of an `HttpClient`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpClientOptions {
    /// How long a connection may take to be ready for a request: name, socket, proxy and TLS.
    pub connect_timeout: Duration,
    /// How long the head of an answer may take, connecting included. `None`: without a
    /// limit, because a server may send it only when a long call is done.
    pub headers_timeout: Option<Duration>,
    /// The longest body that is read as a whole, in bytes.
    pub max_body: usize,
    /// The longest event of an event stream, in bytes.
    pub max_event: usize,
    /// Which requests go through a proxy.
    pub proxies: ProxyRules,
    /// The networks that locally resolved host names may be in; `None` for any. Proxies resolve
    /// names themselves.
    pub reach: Option<Reach>,
    /// Certificates in PEM to trust besides those of the platform and of `SSL_CERT_FILE`.
    pub extra_roots: Option<Bytes>,
}

/// The default limits, and the proxies of the environment.
impl Default for HttpClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            headers_timeout: None,
            max_body: 16 * MEBIBYTE,
            max_event: 16 * MEBIBYTE,
            proxies: ProxyRules::from_environment(),
            reach: None,
            extra_roots: None,
        }
    }
}
