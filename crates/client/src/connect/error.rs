//! Why a connection attempt failed.

use std::sync::Arc;
use std::time::Duration;

use super::discover::is_modern;
use crate::auth::AuthError;
use crate::child::StartError;
use crate::error_text::{brief, error_text, with_stderr_tail};
use crate::http::HttpClientError;
use crate::link::LinkError;

/// Why a server is not connected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Its program cannot be started.
    #[error("{}", error_text(.0.as_ref()))]
    Start(Arc<StartError>),
    /// The HTTP client cannot be created.
    #[error("{}", error_text(.0.as_ref()))]
    Http(Arc<HttpClientError>),
    /// The transport failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The user did not sign in.
    #[error(transparent)]
    SignIn(AuthError),
    /// It answered `initialize` or `server/discover` with an error.
    #[error("the server refused {method}: {message} ({code})")]
    Refused {
        /// The refused method.
        method: &'static str,
        /// Its error's code.
        code: i64,
        /// Its error's message.
        message: String,
    },
    /// The server and Plexus have no protocol version in common.
    #[error("the server supports only the protocol versions {}, and Plexus none of these", .0.join(", "))]
    NoCommonVersion(Vec<String>),
    /// Its definition cannot be made, for example because a secret cannot be fetched.
    #[error("{0}")]
    Prepare(String),
    /// No attempt is made or waited for, for example because of a crash loop or a shutdown.
    #[error("{0}")]
    NotStarted(String),
    /// It took too long.
    #[error("{}", with_stderr_tail(&format!("the server did not answer {method} within {} s", .within.as_secs_f64()), .stderr_tail))]
    Timeout {
        /// The method that was not answered in time.
        method: &'static str,
        /// The timeout.
        within: Duration,
        /// The last lines of its process's standard error.
        stderr_tail: Vec<String>,
    },
}

impl ConnectError {
    /// Nothing is started any more.
    pub(crate) fn shutting_down() -> Self {
        Self::NotStarted("Plexus is shutting down".to_owned())
    }

    /// Whether only stateless servers send this error.
    pub(super) fn is_of_a_stateless_server(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if is_modern(*code))
    }

    /// Whether the error may come from a handshake of the wrong era.
    pub(crate) fn may_be_wrong_era(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NoCommonVersion(_) | Self::Timeout { .. } => true,
            Self::Link(error) => !matches!(
                error,
                LinkError::Unreachable(_)
                    | LinkError::NeedsAuth { .. }
                    | LinkError::NoCredentials(_)
                    | LinkError::SessionLost
                    | LinkError::Closed(_)
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
    pub fn wants_user(&self) -> bool {
        matches!(self, Self::Link(LinkError::NeedsAuth { wants_user, .. }) if *wants_user)
    }
}
