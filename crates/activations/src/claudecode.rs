//! Conversations with Claude Code, or any command line agent that speaks its stream of JSON.
//!
//! A [`Session`] has a name, a folder to work in, and the agent's own id of the conversation, which
//! each chat resumes. What the agent says and does is relayed while it does; what it wants to do
//! and is not allowed to is asked through [`loopback`](crate::loopback): it is given an endpoint of
//! its own, on this machine and under a path that nobody else knows, that has nothing but the tool
//! to ask with. An agent therefore cannot answer its own questions.
//!
//! Sessions are in the store. What runs, runs in this process: it ends with it.
//!
//! [`claudecode`] adds the tools, [`ClaudeCode`] is what they work on.

mod chat;
mod endpoint;
mod error;
mod event;
mod program;
mod sessions;
mod streams;
mod tables;
mod tools;

pub use error::ClaudeCodeError;
pub use program::Settings;
pub use sessions::{NewSession, Session, Sessions};
pub use tables::MIGRATIONS;
pub use tools::claudecode;

use tokio_util::task::TaskTracker;

use crate::loopback::Permissions;
use streams::Streams;

/// Everything that a chat needs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClaudeCode {
    settings: Settings,
    sessions: Sessions,
    permissions: Permissions,
    streams: Streams,
    /// What goes on when nobody waits for it.
    tasks: TaskTracker,
}

impl ClaudeCode {
    /// Chats in these sessions, with these permissions.
    pub fn new(settings: Settings, sessions: Sessions, permissions: Permissions) -> Self {
        Self {
            settings,
            sessions,
            permissions,
            streams: Streams::default(),
            tasks: TaskTracker::new(),
        }
    }
}
