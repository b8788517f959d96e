//! Permission requests of agents that run without a terminal, and their answers.
//!
//! A command line agent is configured to call the tool `permit` before it uses a tool of its own
//! (Claude Code: `--permission-prompt-tool mcp__plexus__loopback_permit`). The answer can come from
//! the user of the calling client, if that client supports elicitation; from any client that lists
//! `pending` requests and calls `respond`; or from a client that calls `wait` and asks its user.
//! The first answer counts. Without an answer in time, permission is denied.
//!
//! Requests are stored, so another process on the same data can answer. Requests of a process that
//! was killed expire.
//!
//! [`loopback`] adds the tools; [`Permissions`] holds the data that they work on.

mod error;
mod permissions;
mod question;
mod tables;
mod tools;

pub use error::LoopbackError;
pub use permissions::{ANSWER_TIMEOUT, Decision, Pending, Permissions, Request};
pub use tables::MIGRATIONS;
pub use tools::loopback;
pub(crate) use tools::{Permit, answer};
