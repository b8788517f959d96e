//! Errors of sessions and chats.

use plexus_mcp_client::child::StartError;
use plexus_mcp_core::ToolError;
use plexus_mcp_store::{StoreError, rusqlite};

use plexus_mcp_builtins::support::log_store_error;

/// Why an operation on a session failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaudeCodeError {
    /// No session has this name or id (S003-20).
    #[error("Session '{0}' not found")]
    NotFound(String),
    /// Another session has this name.
    #[error("there is a session '{0}' already; choose another name")]
    Taken(String),
    /// Another chat uses the session. Each chat continues the previous one, so they cannot overlap.
    #[error(
        "the session '{0}' is busy with another chat; try again when that has ended, or fork it"
    )]
    Busy(String),
    /// The working directory does not exist.
    #[error("there is no folder {0}")]
    NoFolder(String),
    /// No stream has this id.
    #[error("there is no stream {0}; streams end with the process that started them")]
    NoStream(String),
    /// The maximum number of chats run in the background.
    #[error("{0} chats run in the background already; wait until one has ended")]
    TooMany(usize),
    /// The agent could not be started.
    #[error("{reason}; {advice}")]
    Start {
        /// Why the program could not be started.
        reason: StartError,
        /// Advice to the user.
        advice: String,
    },
    /// The endpoint or the configuration file of the agent could not be created.
    #[error("cannot prepare for the agent: {0}")]
    Prepare(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for ClaudeCodeError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<ClaudeCodeError> for ToolError {
    fn from(error: ClaudeCodeError) -> Self {
        if let ClaudeCodeError::Store(error) = &error {
            log_store_error(error, "the sessions");
        }
        Self::failed(error)
    }
}
