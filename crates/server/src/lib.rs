//! The server edge: shows a [`Service`](plexus_mcp_core::Service) to MCP clients of every revision,
//! over stdio, Streamable HTTP and HTTP+SSE.
//!
//! An [`Edge`] is made of a service and [`Options`], and given to one or more transports. Which
//! era a message belongs to is decided message by message, so both are served side by side.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use plexus_mcp_server::http::{HttpOptions, HttpServer};
//! use plexus_mcp_server::{Edge, Options};
//! use plexus_mcp_core::LocalService;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let service = LocalService::builder("empty", "1.0.0").build()?;
//! let edge = Edge::new(Arc::new(service), Options::default())?;
//! let addresses = ["127.0.0.1:4445".parse()?];
//! let server = HttpServer::bind(Arc::clone(&edge), &addresses, HttpOptions::default()).await?;
//! server.run().await;
//! # Ok(())
//! # }
//! ```
//!
//! The edge deliberately does not know how a service works, nor where its answers come from.
//!
//! Dropping the future of a transport ends it at once; [`Edge::shut_down`] ends it properly.

mod batch;
mod caller;
mod canonical;
mod edge;
mod encoder;
mod event_stream;
mod exchange;
mod fair_eviction;
pub mod http;
mod listen;
mod lists;
mod lock;
pub mod net;
mod options;
mod park;
mod parsed_request;
pub mod pipe;
mod question;
mod replay_budget;
mod running_call;
mod seal;
mod session;
mod session_sink;
mod stateless;
pub mod stdio;
mod writer;

pub use caller::CallerIdentity;
pub use edge::Edge;
pub use event_stream::Replay;
pub use options::{Options, Profile};
pub use plexus_mcp_protocol::classify::ServedEras;
pub use seal::SealKey;
