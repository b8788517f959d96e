//! What can go wrong with cones.

use plexus_service::{AskError, ToolError};
use plexus_store::{StoreError, rusqlite};

use crate::arbor::ArborError;
use crate::model::{ModelError, Provider};
use crate::trouble::log;

/// Why a cone did not do what it was asked for. Its tree and its head are as they were then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConeError {
    /// There is no such cone.
    #[error("cone not found: {0}")]
    NotFound(String),
    /// Several cones have names or ids that begin so.
    #[error("{identifier:?} fits several cones: {}; say more of it", matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        identifier: String,
        /// Which it fits, by name and id.
        matches: Vec<String>,
    },
    /// Another cone has the name.
    #[error("there is a cone called {0:?} already")]
    NameTaken(String),
    /// The name cannot be used.
    #[error("a cone's name has 1 to 100 characters, none of them a control character")]
    BadName,
    /// There is nothing to answer.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The conversation has become too long for any model.
    #[error(
        "the conversation has {0} bytes, which is too much to send; set the head to an earlier node"
    )]
    TooLong(u64),
    /// Nobody is there to answer.
    #[error(
        "there is no key for {0}, and the client offers no sampling: set {variable} where Plexus \
         is started, or give the cone a base_url",
        variable = .0.key_variable()
    )]
    NobodyAnswers(Provider),
    /// The client was to answer, and cannot.
    #[error("the client offers no sampling; use a model of anthropic/ or openai/")]
    NoSampling,
    /// The client did not answer.
    #[error("the client's model gave no answer: {0}")]
    Sampling(AskError),
    /// The model said nothing.
    #[error("the model said nothing (it stopped for this reason: {0})")]
    Speechless(String),
    /// The answer is there, but could not be stored.
    #[error("the answer could not be kept, so the conversation is as it was before: {0}")]
    NotKept(#[source] Box<ConeError>),
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tree does not allow it.
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
            ConeError::NotKept(beneath) => beneath,
            other => other,
        };
        if let ConeError::Store(error) = stored {
            log(error, "the cones");
        }
        Self::failed(error)
    }
}
