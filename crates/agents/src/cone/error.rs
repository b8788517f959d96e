//! Errors of cones.

use plexus_mcp_core::{AskError, ToolError};
use plexus_mcp_store::{StoreError, rusqlite};

use crate::model::{ModelError, Provider};
use plexus_mcp_builtins::arbor::ArborError;
use plexus_mcp_builtins::support::log_store_error;

/// Why an operation on a cone failed. The tree and its head are unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConeError {
    /// No cone has this id or name.
    #[error("cone not found: {0}")]
    NotFound(String),
    /// Several cones have names or ids that begin with the identifier.
    #[error("{identifier:?} matches several cones: {}; use a longer part of the name or id", matches.join(", "))]
    Ambiguous {
        /// The identifier that the caller gave.
        identifier: String,
        /// The cones that match, by name and id.
        matches: Vec<String>,
    },
    /// Another cone has the name.
    #[error("there is a cone called {0:?} already")]
    NameTaken(String),
    /// The name is empty, too long, or has control characters.
    #[error("a cone's name has 1 to 100 characters, none of them a control character")]
    BadName,
    /// The prompt is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The conversation is too long to send to a model.
    #[error(
        "the conversation has {0} bytes, which is too much to send; set the head to an earlier node"
    )]
    TooLong(u64),
    /// There is neither a key for the provider nor a client that supports sampling.
    #[error(
        "there is no key for {0}, and the client offers no sampling: set {variable} where Plexus \
         is started, or give the cone a base_url",
        variable = .0.key_variable()
    )]
    ProviderUnavailable(Provider),
    /// The model is that of the client, but the client does not support sampling.
    #[error("the client offers no sampling; use a model of anthropic/ or openai/")]
    NoSampling,
    /// The client did not answer the sampling request.
    #[error("the client's model gave no answer: {0}")]
    Sampling(AskError),
    /// The answer of the model is empty or blank.
    #[error("the model returned an empty answer (stop reason: {0})")]
    EmptyAnswer(String),
    /// The model answered, but the answer could not be stored.
    #[error("the answer could not be stored, so the conversation is unchanged: {0}")]
    NotStored(#[source] Box<ConeError>),
    /// The request to the model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The operation on the tree failed.
    #[error(transparent)]
    Tree(ArborError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ArborError> for ConeError {
    fn from(error: ArborError) -> Self {
        match error {
            ArborError::Store(error) => Self::Store(error),
            other => Self::Tree(other),
        }
    }
}

impl From<rusqlite::Error> for ConeError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<ConeError> for ToolError {
    fn from(error: ConeError) -> Self {
        let stored = match &error {
            ConeError::NotStored(beneath) => beneath,
            other => other,
        };
        if let ConeError::Store(error) = stored {
            log_store_error(error, "the cones");
        }
        Self::failed(error)
    }
}
