//! Opens connections: directly or through a proxy, with TLS for https.

use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_service::Service;

use super::error::Cause;
use super::lost::OpeningConnections;
use super::options::HttpClientOptions;
use super::origin::Origin;
use super::proxy::ProxyRules;
use super::resolve::Resolver;
use super::tls::Tls;

/// TCP keep-alive probes are sent after this time without data. An event stream may be idle for hours.
const TCP_KEEPALIVE_IDLE_TIME: Duration = Duration::from_mins(1);

/// Opens the connections of a client, each within the time allowed.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    dialer: Dialer,
    timeout: Duration,
    opening: OpeningConnections,
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ConnectFailure {
    #[error("no connection")]
    Dial(#[source] Cause),
    #[error("no connection through the proxy {proxy}")]
    Proxy { proxy: Origin, source: Cause },
    #[error("no secure connection")]
    Tls(#[source] Cause),
    #[error("no connection in time")]
    Timeout,
}

impl Connector {
    pub(super) fn new(options: &HttpClientOptions, tls: Tls, opening: OpeningConnections) -> Self {
        let tcp = |reach| {
            let mut tcp = HttpConnector::new_with_resolver(Resolver { reach });
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_keepalive(Some(TCP_KEEPALIVE_IDLE_TIME));
            // The addresses of a name share this, so that a dead one does not use up the time of
            // all.
            tcp.set_connect_timeout(Some(options.connect_timeout));
            tcp
        };
        Self {
            dialer: Dialer {
                tcp: tcp(options.reach),
                proxy_tcp: tcp(None),
                tls: Arc::new(tls),
                proxies: options.proxies.clone(),
            },
            timeout: options.connect_timeout,
            opening,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<ProxyableStream>;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.dialer.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let dialer = self.dialer.clone();
        let connecting = tokio::time::timeout(self.timeout, dialer.connect(target));
        let opening = self.opening.begin();
        Box::pin(async move {
            let connected = connecting.await;
            drop(opening);
            connected.unwrap_or_else(|_elapsed| Err(ConnectFailure::Timeout))
        })
    }
}

/// The error of the dialer; every other error of the connector comes from TLS.
fn dialer_or_tls(error: Box<dyn Error + Send + Sync>) -> ConnectFailure {
    match error.downcast::<ConnectFailure>() {
        Ok(failure) => *failure,
        Err(error) => ConnectFailure::Tls(Arc::from(error)),
    }
}

/// Opens a stream of bytes to a target or, where the rules say so, to its proxy.
#[derive(Debug, Clone)]
struct Dialer {
    tcp: HttpConnector<Resolver>,
    /// For proxies, whose addresses are not restricted, because the user configured them.
    proxy_tcp: HttpConnector<Resolver>,
    tls: Arc<Tls>,
    proxies: ProxyRules,
}

impl Dialer {
    async fn connect(
        self,
        target: Uri,
    ) -> Result<MaybeHttpsStream<ProxyableStream>, ConnectFailure> {
        if target.scheme() == Some(&Scheme::HTTP) {
            return self.dial(target).await.map(MaybeHttpsStream::Http);
        }
        let tls = self.tls.config().map_err(tls_failure)?;
        let connected = HttpsConnector::from((self, tls)).call(target).await;
        connected.map_err(dialer_or_tls)
    }

    async fn dial(self, target: Uri) -> Result<ProxyableStream, ConnectFailure> {
        match self.proxies.proxy(&target) {
            Some(proxy) => self.dial_through(&proxy, target).await,
            None => self.dial_directly(target).await,
        }
    }

    async fn dial_directly(mut self, target: Uri) -> Result<ProxyableStream, ConnectFailure> {
        match self.tcp.call(target).await {
            Ok(stream) => Ok(ProxyableStream::new(stream.into(), false)),
            Err(error) if is_timeout(&error) => Err(ConnectFailure::Timeout),
            Err(error) => Err(ConnectFailure::Dial(Arc::new(error))),
        }
    }

    /// A proxy reads plain http requests. For https it opens a tunnel, which it cannot read.
    async fn dial_through(
        self,
        proxy: &Intercept,
        target: Uri,
    ) -> Result<ProxyableStream, ConnectFailure> {
        let origin = Origin::of(proxy.uri())
            .map_err(|_not_http| ConnectFailure::Dial(Arc::new(UnsupportedProxy)))?;
        let tls = self.tls.proxy_config().map_err(tls_failure)?;
        let mut to_proxy = HttpsConnector::from((self.proxy_tcp, tls));
        let is_proxied = target.scheme() == Some(&Scheme::HTTP);
        let stream = if is_proxied {
            let connected = to_proxy.call(proxy.uri().clone()).await;
            connected.map_err(Cause::from)
        } else {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            let connected = tunnel.call(target).await;
            connected.map_err(|error| Arc::new(error) as Cause)
        };
        match stream {
            Ok(stream) => Ok(ProxyableStream::new(stream, is_proxied)),
            Err(source) => Err(ConnectFailure::Proxy {
                proxy: origin,
                source,
            }),
        }
    }
}

impl Service<Uri> for Dialer {
    type Response = ProxyableStream;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<ProxyableStream, ConnectFailure>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let ready = self.tcp.poll_ready(cx);
        ready.map_err(|error| ConnectFailure::Dial(Arc::new(error)))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        Box::pin(self.clone().dial(target))
    }
}

fn tls_failure(error: rustls::Error) -> ConnectFailure {
    ConnectFailure::Tls(Arc::new(error))
}

fn is_timeout(error: &dyn Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let system = error.downcast_ref::<io::Error>();
        if system.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A proxy with an unsupported scheme. Requests fail, because bypassing a configured proxy would be
/// worse.
#[derive(Debug, thiserror::Error)]
#[error("the proxy is not an http or https one")]
struct UnsupportedProxy;

/// A byte stream to a server or an HTTP proxy. Requests to a proxy have an absolute URL.
pub(super) struct ProxyableStream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    is_proxied: bool,
    closed: ConnectionClosed,
    _closes: DropGuard,
}

/// Is cancelled when the stream of a connection is dropped. Part of the metadata of the connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionClosed(pub(super) CancellationToken);

impl ProxyableStream {
    fn new(stream: MaybeHttpsStream<TokioIo<TcpStream>>, is_proxied: bool) -> Self {
        let closed = CancellationToken::new();
        Self {
            stream,
            is_proxied,
            closed: ConnectionClosed(closed.clone()),
            _closes: closed.drop_guard(),
        }
    }
}

impl Connection for ProxyableStream {
    fn connected(&self) -> Connected {
        let connected = self.stream.connected().proxy(self.is_proxied);
        connected.extra(self.closed.clone())
    }
}

impl Read for ProxyableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for ProxyableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
