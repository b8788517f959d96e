//! The server edge: shows a [`Service`](plexus_service::Service) to MCP clients of every revision,
//! over stdio, Streamable HTTP and HTTP+SSE.
//!
//! An [`Edge`] is made of a service and [`Options`], and given to one or more transports. Which
//! era a message belongs to is decided message by message, so both are served side by side.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use plexus_server::http::{HttpOptions, HttpServer};
//! use plexus_server::{Edge, Options};
//! use plexus_service::LocalService;
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
//! What is deliberately absent: knowledge of what a service does, and of where its answers come
//! from.
//!
//! Dropping the future of a transport ends it at once; [`Edge::shut_down`] ends it properly.

mod asked;
mod batch;
mod canonical;
mod edge;
mod event_stream;
mod exchange;
pub mod http;
mod listen;
mod lists;
mod lock;
pub mod net;
mod options;
mod outlet;
mod park;
mod patience;
pub mod pipe;
mod question;
mod render;
mod running;
mod seal;
mod session;
mod shares;
mod stateless;
pub mod stdio;
mod writer;

pub use edge::Edge;
pub use event_stream::Replay;
pub use options::{Options, Profile};
pub use plexus_mcp::classify::Served;
pub use seal::SealKey;
