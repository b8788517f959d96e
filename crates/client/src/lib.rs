//! The client edge: makes one MCP server, of any revision, over any transport, a
//! [`Service`](plexus_service::Service).
//!
//! ```no_run
//! use plexus_client::{Definition, Program, Target, Upstream};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::new("mcp-server-time");
//! let upstream = Upstream::new(Definition::new(Target::Stdio(program)));
//! upstream.connect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Which era the server speaks is found out when it is connected. What it offers is its
//! [`Catalogue`](plexus_service::Catalogue); what it asks during a call is put to the caller, whatever
//! the era of either.
//!
//! What is deliberately absent: names for many servers, configuration files, restarts: those are a
//! hub's business.
//!
//! Dropping the future of a call cancels the call at the server. Dropping an [`Upstream`] ends its
//! connection.

mod asks;
pub mod auth;
mod chain;
pub mod child;
mod connect;
pub mod crowd;
mod definition;
pub mod http;
mod link;
mod listing;
mod live;
mod lock;
mod matched;
mod rpc;
mod server_facts;
mod stamp;
mod status;
mod upstream;
mod watched;

pub use asks::Asks;
pub use child::Program;
pub use connect::{ConnectError, Quirk};
pub use definition::{Affinity, Definition, HttpTarget, Target, Timeouts};
pub use link::LinkError;
pub use listing::{Oddity, Quarantined};
pub use matched::Matched;
pub use rpc::Misdeeds;
pub use server_facts::ServerFacts;
pub use status::{ProcessInfo, State, Status};
pub use upstream::{Report, Upstream};

pub use plexus_mcp::Era;
pub use plexus_mcp::messages::ClientCapabilities;
