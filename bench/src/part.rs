//! The parts of a run. Each is a table of the report.

pub(crate) mod gateway;
pub(crate) mod lists;
pub(crate) mod load_memory;
pub(crate) mod memory;
pub(crate) mod policy;
pub(crate) mod server;
pub(crate) mod start;
pub(crate) mod stdio;
