//! Why a connection attempt failed.

use std::sync::Arc;
use std::time::Duration;

use super::discover::is_modern;
use crate::auth::AuthError;
use crate::child::StartError;
use crate::error_text::{brief, error_text, with_last_words};
use crate::http::HttpClientError;
use crate::link::LinkError;

/// Why a server is not connected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Its program cannot be started.
    #[error("{}", error_text(.0.as_ref()))]
    Start(Arc<StartError>),
    /// We cannot speak HTTP here at all.
    #[error("{}", error_text(.0.as_ref()))]
    Http(Arc<HttpClientError>),
    /// The way to it failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The user did not sign in.
    #[error(transparent)]
    SignIn(AuthError),
    /// It answered the greeting with an error.
    #[error("the server refused {method}: {message} ({code})")]
    Refused {
        /// The greeting.
        method: &'static str,
        /// Its error's code.
        code: i64,
        /// Its error's message.
        message: String,
    },
    /// It speaks no version that we speak.
    #[error("the server speaks only {}, and Plexus none of these", .0.join(", "))]
    NoCommonVersion(Vec<String>),
    /// Its definition cannot be made, as when a secret cannot be fetched.
    #[error("{0}")]
    Prepare(String),
    /// It is not started now.
    #[error("{0}")]
    NotStarted(String),
    /// It took too long.
    #[error("{}", with_last_words(&format!("the server did not answer {method} within {} s", .within.as_secs_f64()), .last_words))]
    Timeout {
        /// The greeting.
        method: &'static str,
        /// How long it had.
        within: Duration,
        /// What its process last said on its standard error.
        last_words: Vec<String>,
    },
}

impl ConnectError {
    /// Whether only a stateless server would say this.
    pub(super) fn is_of_a_stateless_server(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if is_modern(*code))
    }

    /// Whether the error may come from a handshake of the wrong era.
    pub(crate) fn may_be_wrong_era(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NoCommonVersion(_) | Self::Timeout { .. } => true,
            Self::Link(error) => !matches!(
                error,
                LinkError::Unreachable(_) | LinkError::NeedsAuth { .. } | LinkError::SessionLost
            ),
            Self::Start(_)
            | Self::Http(_)
            | Self::SignIn(_)
            | Self::Prepare(_)
            | Self::NotStarted(_) => false,
        }
    }

    /// The error as a text for callers: without the output of the server's process, which only its
    /// operator may see.
    pub fn for_caller(&self) -> String {
        brief(&self.to_string()).to_owned()
    }

    /// Whether the server wants credentials.
    pub(crate) fn needs_auth(&self) -> bool {
        matches!(self, Self::Link(LinkError::NeedsAuth { .. }))
    }

    /// Whether it would help if a user signed in.
    pub(crate) fn wants_user(&self) -> bool {
        matches!(self, Self::Link(LinkError::NeedsAuth { wants_user, .. }) if *wants_user)
    }
}
