//! The built-in services that every gateway offers: [`health`], [`echo`], [`task`](task::task),
//! [`context`](context::context) and [`arbor`](arbor::arbor).
//!
//! Each of these functions adds the tools and resources of one namespace to a
//! [`Builder`](plexus_mcp_core::Builder). [`service`] builds one service of all of them, on the
//! [`Data`] that they share. The crate `plexus-mcp-agents` adds the services that run agents and
//! models.
//!
//! A tool has a namespace and a method, such as `health` and `check`. [`Names`] selects how the two
//! are joined to one name; a call may use either spelling, whichever is listed (C11).
//!
//! ```
//! use plexus_mcp_builtins::{Data, Names, DataPaths, Servers};
//! use plexus_mcp_core::{Section, Service};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let data = Data::open(&DataPaths::in_directory(folder))?;
//! let servers = Servers::default();
//! let service = plexus_mcp_builtins::service(Names::Dotted, "1.0.0", &data, &servers)?;
//! let catalogue = service.catalogue();
//! assert!(catalogue.borrow().list(Section::Tools).get("echo.once").is_some());
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: protocol revisions, transports, and connections to other servers.

pub mod arbor;
mod catalogue_diff;
pub mod context;
mod data;
mod echo;
mod external_changes;
mod health;
mod json;
mod names;
mod notifying_store;
mod service;
mod store_errors;
pub mod support;
pub mod task;
mod tool_aliases;
mod tool_annotations;
mod tool_set;

pub use data::{Data, DataPaths};
pub use echo::echo;
pub use external_changes::RefreshTreeLists;
pub use health::{ServerHealth, Servers, health};
pub use names::Names;
pub use plexus_mcp_store::StoreError;
pub use service::service;
pub use tool_aliases::AliasedService;

#[cfg(test)]
mod testing;
