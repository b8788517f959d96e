//! Many MCP servers as one `Service`.

pub mod config;
