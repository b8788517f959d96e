//! What can go wrong with permissions.

use plexus_service::{Fault, ToolError};
use plexus_store::{StoreError, rusqlite};

/// Why a permission could not be asked for or given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopbackError {
    /// Nobody asked this, or it was long ago.
    #[error("no permission was asked for under the id {0}; list what is pending")]
    NotFound(String),
    /// Somebody else answered before, or the time for it is over.
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
            let source = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(%error, source, "permissions cannot use their store");
            return Self::Fault(Fault::Internal(error.to_string()));
        }
        Self::failed(error)
    }
}
