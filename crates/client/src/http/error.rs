use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy;
use plexus_mcp_wire::SkimmedEnvelope;

use super::connect::ConnectFailure;
use super::origin::Origin;

/// The source of an error.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Why there is no client.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HttpClientError {
    /// The certificates to trust are not PEM, or one of them is no certificate authority's.
    #[error("cannot use the extra root certificates")]
    BadRoots(#[source] Cause),
    /// There is no certificate among them.
    #[error("the extra root certificates hold no certificate")]
    NoRoots,
}

/// Why an exchange failed.
///
/// The text names the origin and never the path, the query or a header.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL is relative, or of another scheme.
    #[error("the url is not an absolute http or https url")]
    NotHttp,
    /// The URL holds credentials, which would appear in logs.
    #[error(
        "the url of {origin} holds a user name or password, which belong in an authorization header"
    )]
    Userinfo {
        /// Where the request should have gone.
        origin: Origin,
    },
    /// No connection came about.
    #[error("cannot connect to {origin}")]
    Connect {
        /// Where the request should have gone.
        origin: Origin,
        /// What the system said.
        source: Cause,
    },
    /// The proxy cannot be reached, or does not open a tunnel.
    #[error("cannot connect to {origin} through the proxy {proxy}")]
    Proxy {
        /// Where the request should have gone.
        origin: Origin,
        /// The proxy in between.
        proxy: Origin,
        /// What the system or the proxy said.
        source: Cause,
    },
    /// The TLS handshake failed, for example because the certificate is not trusted.
    #[error("no secure connection to {origin}")]
    Tls {
        /// Where the request should have gone.
        origin: Origin,
        /// What TLS said.
        source: Cause,
    },
    /// It took too long.
    #[error("{origin} did not {stage} within {after:?}")]
    Timeout {
        /// Where the request should have gone or went.
        origin: Origin,
        /// What was waited for.
        stage: Stage,
        /// How long.
        after: Duration,
    },
    /// The connection broke off after the request may have been sent.
    #[error("the connection to {origin} broke")]
    Broken {
        /// Where the request went.
        origin: Origin,
        /// What the system or the parser said.
        source: Cause,
    },
    /// The body is longer than is accepted.
    #[error("the answer of {origin} is longer than {limit} bytes")]
    TooLarge {
        /// Where the request went.
        origin: Origin,
        /// The size of the body as far as it is known, in bytes.
        size: u64,
        /// The most that is accepted, in bytes.
        limit: usize,
    },
    /// One event was longer than allowed, and was discarded. The stream goes on.
    #[error("an event of {origin} is longer than {limit} bytes")]
    EventTooLong {
        /// Where the request went.
        origin: Origin,
        /// The size of the event, in bytes.
        size: u64,
        /// The most that is accepted, in bytes.
        limit: usize,
        /// The JSON-RPC requests and responses in it, as far as their ids could be read.
        envelopes: Vec<SkimmedEnvelope>,
    },
}

/// What a request was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "before or after sending is all there is, and whether a retry is safe hangs on it"
)]
pub enum Stage {
    /// For a connection to send it on.
    Connect,
    /// For the head of the answer.
    Answer,
}

impl HttpError {
    /// Whether nothing of the request was sent, so that sending it again is safe.
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Proxy { .. } | Self::Tls { .. } => true,
            Self::Timeout { stage, .. } => *stage == Stage::Connect,
            _ => false,
        }
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// There is no connection to send a request on.
    fn unconnected(origin: Origin, failure: ConnectFailure, timeout: Duration) -> Self {
        match failure {
            ConnectFailure::Dial(source) => Self::Connect { origin, source },
            ConnectFailure::Proxy { proxy, source } => Self::Proxy {
                origin,
                proxy,
                source,
            },
            ConnectFailure::Tls(source) => Self::Tls { origin, source },
            ConnectFailure::Timeout => Self::Timeout {
                origin,
                stage: Stage::Connect,
                after: timeout,
            },
        }
    }

    /// The failure that hyper reports for a request without a response.
    pub(super) fn unsent_or_broken(
        origin: Origin,
        error: legacy::Error,
        connect_timeout: Duration,
    ) -> Self {
        let failure = error.source().and_then(|source| source.downcast_ref());
        match failure.cloned() {
            Some(failure) => Self::unconnected(origin, failure, connect_timeout),
            None if error.is_connect() => Self::Connect {
                origin,
                source: Arc::new(RequestFailure(error)),
            },
            None => Self::broken(origin, RequestFailure(error)),
        }
    }

    /// The connection failed after the request may have been sent.
    pub(super) fn broken(origin: Origin, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Broken {
            origin,
            source: Arc::new(source),
        }
    }
}

/// hyper's reason alone: the outer error only says that a request failed.
#[derive(Debug)]
struct RequestFailure(legacy::Error);

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(reason) => write!(f, "{reason}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Error for RequestFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()?.source()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "accept a connection",
            Self::Answer => "answer",
        })
    }
}
