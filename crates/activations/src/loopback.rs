//! Permissions for agents that run without a terminal: an agent asks, somebody else answers.
//!
//! A command line agent is told to ask the tool `permit` before it uses a tool of its own (Claude
//! Code: `--permission-prompt-tool mcp__plexus__loopback_permit`). The answer comes from the user
//! of whoever asks, if that client can ask its user; from any client that sees what is `pending`
//! and `respond`s; or from a client that `wait`s with its user at hand. Whoever answers first
//! decides; if nobody does in time, permission is denied.
//!
//! Requests are in the store, so an answer may come from another process on the same data. What is
//! left of a process that was killed expires.
//!
//! [`loopback`] adds the tools, [`Permissions`] are the requests themselves.

mod error;
mod permissions;
mod question;
mod tables;
mod tools;

pub use error::LoopbackError;
pub use permissions::{Decision, PATIENCE, Pending, Permissions, Request};
pub use tables::MIGRATIONS;
pub use tools::loopback;
pub(crate) use tools::{Permit, answer};
