//! Sessions with Claude Code, or with another command line agent that has the same JSON stream.
//!
//! A [`Session`] has a name, a working directory, and the agent's own id of the conversation, which
//! each chat resumes. The messages and tool calls of the agent are relayed while it works. If it
//! needs a permission, it asks through [`loopback`](crate::loopback): each agent gets an MCP
//! endpoint of its own, on a loopback address and under a secret path, which has only the tool for
//! permission requests. An agent therefore cannot answer its own requests.
//!
//! Sessions are stored. Running chats belong to this process and end with it.
//!
//! [`claudecode`] adds the tools; [`ClaudeCode`] holds the data that they work on.

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

/// Settings, sessions and running chats. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClaudeCode {
    settings: Settings,
    sessions: Sessions,
    permissions: Permissions,
    streams: Streams,
    /// Chats that run in the background.
    tasks: TaskTracker,
}

impl ClaudeCode {
    /// Uses these sessions and these permission requests.
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
