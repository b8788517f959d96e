//! What can go wrong with permissions.

use plexus_service::ToolError;
use plexus_store::{StoreError, rusqlite};

use crate::trouble::log;

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
            log(error, "the permissions");
        }
        Self::failed(error)
    }
}
