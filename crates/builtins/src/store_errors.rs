//! Logging of database errors, and their conversion for callers.

use std::error::Error;

use plexus_mcp_core::Fault;
use plexus_mcp_store::StoreError;

/// Logs a database error with its cause. The caller gets the error without the cause. `owner` is,
/// for example, "the task list".
pub fn log_store_error(error: &StoreError, owner: &str) {
    let source = error.source().map(ToString::to_string);
    tracing::error!(%error, source, "the store of {owner} cannot be used");
}

/// Logs a database error, and converts it for a caller that reads a resource.
pub fn store_fault(error: &StoreError, owner: &str) -> Fault {
    log_store_error(error, owner);
    Fault::Internal(error.to_string())
}
