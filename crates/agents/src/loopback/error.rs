//! Errors of permission requests.

use plexus_mcp_core::ToolError;
use plexus_mcp_store::{StoreError, rusqlite};

use plexus_mcp_builtins::support::log_store_error;

/// Why an operation on a permission request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopbackError {
    /// No request has this id, or the request has expired.
    #[error("there is no permission request {0}; list the pending requests")]
    NotFound(String),
    /// The request was answered before, or has expired.
    #[error("the request {0} is no longer pending")]
    Over(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for LoopbackError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<LoopbackError> for ToolError {
    fn from(error: LoopbackError) -> Self {
        if let LoopbackError::Store(error) = &error {
            log_store_error(error, "the permissions");
        }
        Self::failed(error)
    }
}
