//! An agent host: shows a model the tools of MCP servers, asks the user for permission, and runs the
//! calls.
//!
//! An [`Agent`](agent::Agent) has a conversation with a model. Its tools are in a [`Registry`], which
//! treats tools of the host and of servers alike. [`servers`] is the only module that knows servers:
//! it registers their tools, and removes them when they are gone.

pub mod agent;
pub mod host_tools;
pub mod model_client;
pub mod observer;
pub mod permission;
mod registry;
mod result_text;
mod schema;
pub mod servers;
pub mod sub_agent;
pub mod system_prompt;
mod tool;
pub mod transcript;

pub use registry::Registry;
pub use schema::SetupError;
pub use tool::{Tool, ToolContext, ToolOutput};
