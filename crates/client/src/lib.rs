//! The client edge: makes one MCP server, of any revision, over any transport, a
//! [`Service`](plexus_mcp_core::Service).
//!
//! ```
//! use plexus_mcp_client::{HttpTarget, connect};
//! use serde_json::json;
//!
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Zone { zone: String }
//! # async fn serve() -> Result<http::Uri, Box<dyn std::error::Error>> {
//! #     use std::sync::Arc;
//! #     use plexus_mcp_core::{Context, LocalService, Tool};
//! #     use plexus_mcp_server::{Edge, Options, http::{HttpOptions, HttpServer}};
//! #     let service = LocalService::builder("time", "1.0.0")
//! #         .tool(Tool::new("now"), async |Zone { zone }: Zone, _: Context| format!("noon in {zone}"))
//! #         .build()?;
//! #     let edge = Edge::new(Arc::new(service), Options::default())?;
//! #     let server = HttpServer::bind(edge, &["127.0.0.1:0".parse()?], HttpOptions::default()).await?;
//! #     let url = format!("http://{}{}", server.addresses()[0], server.path()).parse()?;
//! #     tokio::spawn(server.run());
//! #     Ok(url)
//! # }
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = serve().await?;
//! let client = connect(HttpTarget::new(url)).await?; // Or a program: connect(Program::new("server"))
//! for tool in client.list_tools().await? {
//!     println!("{}", tool.name);
//! }
//! let result = client.call_tool("now", json!({"zone": "Rome"})).await?;
//! assert_eq!(result.joined_text(), "noon in Rome");
//! # Ok(()) }
//! ```
//!
//! [`Client`] has the other operations of MCP, and streams the progress of a call:
//!
//! ```no_run
//! use plexus_mcp_client::{Program, connect};
//! use plexus_mcp_core::Event;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = connect(Program::new("mcp-server-backup")).await?;
//! let mut call = client.call_tool("backup", ()).stream();
//! while let Some(event) = call.next().await {
//!     if let Event::Progress(progress) = event {
//!         println!("{} of {:?}", progress.progress, progress.total);
//!     }
//! }
//! let result = call.result().await?;
//! # Ok(()) }
//! ```
//!
//! A [`Definition`] has the settings of a server, and [`Supervision`] tells whether it is reconnected:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use http::HeaderValue;
//! use plexus_mcp_client::auth::{OAuth, OAuthOptions};
//! use plexus_mcp_client::{Definition, HttpTarget, Program, Supervision, Upstream, connect};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::new("mcp-server-git")
//!     .args(["--repository", "."])
//!     .env("GIT_PAGER", "cat")
//!     .cwd("/srv/project");
//! let git = connect(program).await?;
//!
//! let url: http::Uri = "https://reports.example.com/mcp".parse()?;
//! let mut target = HttpTarget::new(url.clone());
//! target.headers.insert("x-tenant", HeaderValue::from_static("north"));
//! target.authorizer = Some(Arc::new(OAuth::new(OAuthOptions::new(url))));
//! let mut definition = Definition::from(target);
//! definition.timeouts.connect = Duration::from_secs(5);
//! definition.timeouts.call = Duration::from_mins(1);
//!
//! let upstream = Upstream::supervised(definition, Supervision::once()); // never reconnected
//! upstream.connect().await?;
//! let reports = upstream.client();
//! # let _ = (git, reports);
//! # Ok(()) }
//! ```
//!
//! [`connect`] detects the era of the server. Its tools, resources and prompts are its
//! [`Catalogue`](plexus_mcp_core::Catalogue). A question that it asks during a call is sent to the
//! caller, in the form of the caller's era.
//!
//! A server is reconnected after its connection was lost; see [`Supervision`].
//!
//! Not in this crate: many servers (`plexus-mcp-hub`) and configuration files (`plexus-mcp-config`).
//!
//! Dropping the future of a call cancels the call at the server. Dropping an [`Upstream`] ends its
//! connection.

mod api;
pub mod auth;
pub mod backoff;
pub mod child;
mod connect;
mod connected_server;
mod definition;
mod error_text;
mod hop_metadata;
pub mod http;
mod link;
mod listing;
mod lock;
mod resource_subscriptions;
mod rpc;
mod server_facts;
mod status;
mod upstream;

pub use api::connect;
pub use child::Program;
pub use connect::{ConnectError, Quirk};
pub use definition::{Affinity, Definition, HttpTarget, SessionLimits, Target, Timeouts};
pub use link::LinkError;
pub use listing::{ListProblem, Quarantined};
pub use rpc::ProtocolViolations;
pub use server_facts::ServerFacts;
pub use status::{ProcessInfo, ServerState, Status};
pub use upstream::{History, Prepare, Report, StartSlots, Supervision, Upstream};

pub use plexus_mcp_core::Client;
pub use plexus_mcp_protocol::Era;
pub use plexus_mcp_protocol::messages::ClientCapabilities;
