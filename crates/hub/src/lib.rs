//! Many MCP servers as one [`Service`](plexus_mcp_core::Service).
//!
//! A [`Hub`] has members: servers that it connects through the client edge, and services in this
//! process. It merges their catalogues, gives every tool and prompt a unique name that every model
//! API accepts, and routes each call to its owner. A member that fails does not affect the others.
//!
//! [`plexus_mcp_config`] reads which servers are configured. A [`policy`] decides which tool calls
//! are made.
//!
//! ```
//! use plexus_mcp_client::HttpTarget;
//! use plexus_mcp_hub::Hub;
//! use plexus_mcp_protocol::messages::Implementation;
//! use serde_json::json;
//!
//! # async fn serve(zone: &'static str) -> Result<http::Uri, Box<dyn std::error::Error>> {
//! #     use std::sync::Arc;
//! #     use plexus_mcp_core::{Context, LocalService, NoArguments, Tool};
//! #     use plexus_mcp_server::{Edge, Options, http::{HttpOptions, HttpServer}};
//! #     let service = LocalService::builder("time", "1.0.0")
//! #         .tool(Tool::new("now"), move |_: NoArguments, _: Context| async move { format!("noon in {zone}") })
//! #         .build()?;
//! #     let edge = Edge::new(Arc::new(service), Options::default())?;
//! #     let server = HttpServer::bind(edge, &["127.0.0.1:0".parse()?], HttpOptions::default()).await?;
//! #     let url = format!("http://{}{}", server.addresses()[0], server.path()).parse()?;
//! #     tokio::spawn(server.run());
//! #     Ok(url)
//! # }
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (rome, oslo) = (serve("Rome").await?, serve("Oslo").await?);
//! let hub = Hub::new(Implementation::new("example", "1.0.0"));
//! let servers = [("rome", HttpTarget::new(rome).into()), ("oslo", HttpTarget::new(oslo).into())];
//! hub.set_servers(servers).await;
//! let tools = hub.client().list_tools().await?;
//! assert_eq!(tools.len(), 2); // oslo__now and rome__now
//! let result = hub.call_tool("oslo", "now", json!({})).await?;
//! assert_eq!(result.joined_text(), "noon in Oslo");
//! # Ok(()) }
//! ```
//!
//! Deliberately absent: revisions, eras and transports, which only the edges know.

mod capability_sets;
pub mod catalogue_cache;
mod clients;
mod extensions;
mod hub;
mod latest_wins;
pub mod manage;
mod member;
pub mod names;
pub mod policy;
mod routes;
mod search;
pub mod secrets;
mod ui;

pub use hub::{Hub, HubEvent, MemberStatus, Origin, SetMembers};
pub use member::{LIST_STARTUP_TIMEOUT, MemberKind, MemberSpec, Resolve, ToolFilter};
pub use plexus_mcp_client::Prepare;
