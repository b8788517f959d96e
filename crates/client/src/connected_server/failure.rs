//! Failures of calls.

use plexus_mcp_protocol::Fault;

use super::{ConnectedServer, session_lost_fault};
use crate::auth::AuthError;
use crate::connect::ConnectError;
use crate::error_text::brief;
use crate::link::LinkError;
use crate::rpc::RpcFailure;

/// Why a call has no result.
pub(crate) enum CallFailure {
    /// The error for the caller.
    Fault(Fault),
    /// The server requires credentials, or better ones. The call was not executed.
    NeedsAuth {
        reason: String,
        /// Whether it would help if a user signed in.
        wants_user: bool,
    },
    /// The connection cannot be used any more: the server has lost the session or no longer speaks
    /// the negotiated version, or cannot be reached. The call was not executed.
    Unusable(LinkError),
}

impl From<RpcFailure> for CallFailure {
    fn from(failure: RpcFailure) -> Self {
        match failure {
            RpcFailure::Link(error @ (LinkError::SessionLost | LinkError::Unreachable(_))) => {
                Self::Unusable(error)
            }
            RpcFailure::Link(error @ LinkError::NeedsAuth { wants_user, .. }) => Self::NeedsAuth {
                reason: error.to_string(),
                wants_user,
            },
            other => Self::Fault(ConnectedServer::fault(other)),
        }
    }
}

impl From<ConnectError> for CallFailure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Link(LinkError::NeedsAuth { wants_user, .. }) => Self::NeedsAuth {
                reason: error.to_string(),
                wants_user,
            },
            ConnectError::Link(error @ LinkError::SessionLost) => Self::Unusable(error),
            error => Self::Fault(Fault::Internal(brief(&error.to_string()).to_owned())),
        }
    }
}

impl From<AuthError> for CallFailure {
    fn from(error: AuthError) -> Self {
        Self::NeedsAuth {
            reason: error.to_string(),
            wants_user: error.wants_user(),
        }
    }
}

impl From<CallFailure> for Fault {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Fault(fault) => fault,
            CallFailure::NeedsAuth { reason, .. } => Self::Internal(reason),
            CallFailure::Unusable(LinkError::SessionLost) => session_lost_fault(),
            CallFailure::Unusable(error) => Self::Internal(brief(&error.to_string()).to_owned()),
        }
    }
}

impl From<Fault> for CallFailure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
