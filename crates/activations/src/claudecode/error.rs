//! What can go wrong with sessions and chats.

use plexus_client::child::StartError;
use plexus_service::ToolError;
use plexus_store::{StoreError, rusqlite};

use crate::trouble::log;

/// Why something about a session could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaudeCodeError {
    /// There is no such session (S003-20).
    #[error("Session '{0}' not found")]
    NotFound(String),
    /// Names are unique.
    #[error("there is a session '{0}' already; choose another name")]
    Taken(String),
    /// One chat at a time, since each goes on from the last.
    #[error(
        "the session '{0}' is busy with another chat; try again when that has ended, or fork it"
    )]
    Busy(String),
    /// An agent works in a folder.
    #[error("there is no folder {0}")]
    NoFolder(String),
    /// There is no such stream.
    #[error("there is no stream {0}; streams end with the process that began them")]
    NoStream(String),
    /// Too many agents at work.
    #[error("{0} chats run in the background already; wait until one has ended")]
    TooMany(usize),
    /// The agent could not be started.
    #[error("{reason}; {advice}")]
    Start {
        /// Why.
        reason: StartError,
        /// What to do about it.
        advice: String,
    },
    /// The agent could not be given what it needs.
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
            log(error, "the sessions");
        }
        Self::failed(error)
    }
}
