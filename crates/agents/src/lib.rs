//! The built-in services that run agents and models, and the complete set of built-in services.
//!
//! - [`model`]: HTTP clients of language models, and [`cone`](cone::cone): stored conversations with
//!   them.
//! - [`bash`]: shell commands.
//! - [`claudecode`](claudecode::claudecode): sessions of Claude Code, whose permission requests
//!   [`loopback`](loopback::loopback) answers.
//!
//! Each of these functions adds the tools and prompts of one namespace to a
//! [`Builder`](plexus_mcp_core::Builder). [`service`] and [`profile`] build one service of these and
//! of those in `plexus-mcp-builtins`, on the [`AgentData`] that they share. [`Extras`] selects the
//! services: `bash`, `claudecode` and `loopback` are offered only if the caller of [`service`]
//! allows them.
//!
//! Deliberately absent: protocol revisions, transports towards clients, and connections to other
//! servers.

mod bash;
mod builtin;
pub mod claudecode;
pub mod cone;
mod data;
pub mod loopback;
pub mod model;
mod profile;
mod service;

pub use bash::{CommandSettings, bash, bash_with};
pub use builtin::{Builtin, BuiltinSelection, UnknownBuiltin};
pub use data::AgentData;
pub use profile::{Profile, profile};
pub use service::{Extras, service};
