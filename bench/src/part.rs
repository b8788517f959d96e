//! What is measured, a table of the report each.

pub(crate) mod gateway;
pub(crate) mod lists;
pub(crate) mod memory;
pub(crate) mod server;
pub(crate) mod start;
pub(crate) mod stdio;
