use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::connect::ConnectFailure;
use super::connection::Breach;
use super::origin::Origin;

/// What lies beneath an error.
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
    /// The URL holds credentials, which would end up in logs and in other people's hands.
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
        /// The most that is accepted.
        limit: usize,
    },
    /// One event was longer than is accepted, and thrown away. The stream goes on.
    #[error("an event of {origin} is longer than {limit} bytes")]
    EventTooLong {
        /// Where the request went.
        origin: Origin,
        /// The most that is accepted.
        limit: usize,
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
    pub(super) fn unconnected(origin: Origin, failure: ConnectFailure, timeout: Duration) -> Self {
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

    /// The connection broke, as `breach` says.
    pub(super) fn broken(origin: Origin, breach: Breach) -> Self {
        Self::Broken {
            origin,
            source: Arc::new(breach),
        }
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
