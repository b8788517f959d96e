//! Notices when a server has lost the session that belongs to no caller. A call renews its session by
//! itself, but lists and subscriptions would stay out of date.

use std::time::Duration;

use plexus_mcp_protocol::method;
use tokio::time::{sleep, timeout};

use super::ConnectedServer;
use crate::backoff::{self, Backoff};
use crate::link::{Headers, LinkError};
use crate::rpc::{RpcFailure, Traits};

/// The backoff of checks while the server does not answer.
const CHECK_BACKOFF_MIN: Duration = Duration::from_secs(1);
const CHECK_BACKOFF_MAX: Duration = Duration::from_mins(1);

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionCheck {
    Known,
    /// The connection is being closed.
    Lost,
    /// The server did not answer.
    Unknown,
}

impl ConnectedServer {
    /// Checks the session whenever it may be lost, until it is.
    pub(super) async fn keep_session_checked(&self) {
        let mut backoff = Backoff::new(CHECK_BACKOFF_MIN, CHECK_BACKOFF_MAX);
        loop {
            self.own.rpc.session_doubted().await;
            loop {
                match self.check_session().await {
                    SessionCheck::Lost => return,
                    SessionCheck::Known => break,
                    SessionCheck::Unknown => sleep(backoff.next_delay(backoff::random())).await,
                }
            }
            backoff.reset();
        }
    }

    /// Pings the server in its own session. If it has lost the session, the connection is closed as
    /// soon as no request is in flight, and another is opened.
    pub(super) async fn check_session(&self) -> SessionCheck {
        let rpc = &self.own.rpc;
        let request = rpc.request(method::PING, None, Headers::new(), Traits::default());
        let answer = async { request.await?.answer().await };
        match timeout(self.definition.timeouts.request, answer).await {
            Ok(Err(RpcFailure::Link(error @ LinkError::SessionLost))) => {
                rpc.close_when_idle(error);
                SessionCheck::Lost
            }
            // An error is an answer, too.
            Ok(Ok(_) | Err(RpcFailure::Error(_) | RpcFailure::Link(LinkError::Http { .. }))) => {
                SessionCheck::Known
            }
            Ok(Err(RpcFailure::Link(_))) | Err(_) => SessionCheck::Unknown,
        }
    }
}
