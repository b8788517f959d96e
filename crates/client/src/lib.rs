//! Makes an MCP server of any revision, over any transport, a `Service`.

mod child;
mod http;
