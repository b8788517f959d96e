//! The state of a server, for users.

use std::time::SystemTime;

/// A server's state, as people see it (S004-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// Not connected yet, or being connected.
    Pending,
    /// Connected.
    Connected,
    /// Could not be connected, or was lost.
    Failed,
    /// Wants credentials.
    NeedsAuth,
    /// Turned off by its user.
    Disabled,
}

impl ServerState {
    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
        }
    }
}

impl std::fmt::Display for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A server's state, why it is so, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The state.
    pub state: ServerState,
    /// Why, where there is something to say.
    pub reason: Option<String>,
    /// Since when.
    pub since: SystemTime,
}

impl Status {
    /// A state that begins now.
    pub fn new(state: ServerState, reason: Option<String>) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "shown to people; nothing is decided by it"
        )]
        let since = SystemTime::now();
        Self {
            state,
            reason,
            since,
        }
    }
}

/// The process behind a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Its number.
    pub pid: u32,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
}

impl ProcessInfo {
    pub(crate) fn new(pid: u32, stderr: Vec<String>) -> Self {
        Self { pid, stderr }
    }
}
