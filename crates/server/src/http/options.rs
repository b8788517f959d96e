//! Settings of the HTTP transports.

use std::time::Duration;

use crate::event_stream::Replay;
use crate::net::{BodyLimits, Host, KEEP_ALIVE, Limits, Origin};

/// Settings of one [`HttpServer`](super::HttpServer).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Where the MCP endpoint is.
    pub path: String,
    /// Where HTTP+SSE of 2024-11-05 is served, if at all.
    pub sse: Option<SsePaths>,
    /// Hosts under which the server may be addressed, besides those it is bound to.
    pub allowed_hosts: Vec<Host>,
    /// Web origins that may use the server, besides those of this machine.
    pub allowed_origins: Vec<Origin>,
    /// What connections may do.
    pub connections: Limits,
    /// How long a request body may take to arrive.
    pub body_idle: Duration,
    /// How long it may take in all.
    pub body_total: Duration,
    /// After how much silence a comment keeps a stream alive.
    pub keep_alive: Duration,
    /// After how long an answer that has not come yet becomes a stream.
    pub stream_after: Duration,
    /// After how much silence a client that can poll is let go, to come back later (2025-11-25).
    pub release_after: Option<Duration>,
    /// When a client that lost its stream may come back.
    pub retry: Duration,
    /// What streams keep for clients that come back.
    pub replay: Replay,
    /// How many legacy sessions may exist. The longest idle makes room for a new one.
    pub max_sessions: usize,
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
            keep_alive: KEEP_ALIVE,
            stream_after: Duration::from_secs(5),
            release_after: None,
            retry: Duration::from_secs(1),
            replay: Replay::default(),
            max_sessions: 65_536,
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
    /// Where the stream is opened.
    pub stream: String,
    /// Where messages are sent.
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
