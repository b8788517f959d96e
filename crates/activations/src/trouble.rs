//! Stores that fail.

use std::error::Error;

use plexus_service::Fault;
use plexus_store::StoreError;

/// The caller is told what to do, the log also why. `whose` is "the task list", for example.
pub(crate) fn log(error: &StoreError, whose: &str) {
    let source = error.source().map(ToString::to_string);
    tracing::error!(%error, source, "the store of {whose} cannot be used");
}

/// For whoever wanted to read a resource.
pub(crate) fn unreadable(error: &StoreError, whose: &str) -> Fault {
    log(error, whose);
    Fault::Internal(error.to_string())
}
