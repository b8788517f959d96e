//! Settings of the HTTP transports.

use std::time::Duration;

use crate::event_stream::Replay;
use crate::net::{BodyLimits, Host, KEEP_ALIVE_INTERVAL, Limits, Origin};

/// Settings of one [`HttpServer`](super::HttpServer).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The path of the MCP endpoint.
    pub path: String,
    /// The paths of HTTP+SSE of 2024-11-05; `None` does not serve it.
    pub sse: Option<SsePaths>,
    /// Hosts under which the server may be addressed, besides those it is bound to.
    pub allowed_hosts: Vec<Host>,
    /// Web origins that may use the server, besides those of this machine.
    pub allowed_origins: Vec<Origin>,
    /// The limits of connections.
    pub connections: Limits,
    /// The longest pause between two pieces of a request body.
    pub body_idle: Duration,
    /// How long a request body may take in all.
    pub body_total: Duration,
    /// The interval of keep-alive comments on a silent stream.
    pub keep_alive: Duration,
    /// How long an answer may take before the response becomes a stream.
    pub stream_after: Duration,
    /// How long a stream may be silent before it is closed for a client that can poll, which
    /// reconnects later (2025-11-25). `None` never closes it.
    pub release_after: Option<Duration>,
    /// How long a client that lost its stream waits before it reconnects, sent as `retry`.
    pub retry: Duration,
    /// The limits of the messages that streams keep, most of all for clients that reconnect.
    pub replay: Replay,
    /// How many legacy sessions may exist. Beyond that, a new session evicts the longest idle one of
    /// the principal with the most sessions.
    pub max_sessions: usize,
    /// How many legacy sessions one principal may have. Beyond that, a new session evicts the longest
    /// idle one of the same principal.
    pub max_sessions_per_principal: usize,
    /// How long a legacy session may be idle.
    pub session_idle: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let body = BodyLimits::default();
        Self {
            path: "/mcp".to_owned(),
            sse: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            connections: Limits::default(),
            body_idle: body.idle,
            body_total: body.total,
            keep_alive: KEEP_ALIVE_INTERVAL,
            stream_after: Duration::from_secs(5),
            release_after: None,
            retry: Duration::from_secs(1),
            replay: Replay::default(),
            max_sessions: 65_536,
            max_sessions_per_principal: 32_768,
            session_idle: Duration::from_hours(1),
        }
    }
}

/// The two paths of HTTP+SSE.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the transport has exactly two endpoints"
)]
pub struct SsePaths {
    /// The path of the stream, for GET.
    pub stream: String,
    /// The path that messages are sent to, by POST.
    pub messages: String,
}

impl Default for SsePaths {
    fn default() -> Self {
        Self {
            stream: "/sse".to_owned(),
            messages: "/messages".to_owned(),
        }
    }
}
