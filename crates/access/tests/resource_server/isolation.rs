//! Two callers on one gateway.
