//! What can go wrong with the graph.

use plexus_service::{Fault, ToolError};
use plexus_store::{StoreError, rusqlite};

use crate::trouble::{log, unreadable};

/// Whose store it is that fails.
const STORE: &str = "the context graph";

/// Why the graph did not do what it was asked for. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There is no such node, or it is forgotten.
    #[error("context node not found: {0}")]
    NotFound(String),
    /// The query says too little (S000-23).
    #[error("query too broad, please be more specific")]
    TooBroad,
    /// A value cannot be used.
    #[error("{member} must be {rule}")]
    Invalid {
        /// Which value.
        member: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// There is no merge of this hash that can still be undone.
    #[error("there is no merge to undo with the hash {0}")]
    UnknownMerge(String),
    /// There is something else already where a merged node was to be.
    #[error("the key {0:?} is taken")]
    KeyTaken(String),
    /// Nothing would be left of a merge.
    #[error("the nodes have no line in common")]
    NothingInCommon,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for GraphError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Said as the founding document says it: "Error: Query too broad, please be more specific".
impl From<GraphError> for ToolError {
    fn from(error: GraphError) -> Self {
        if let GraphError::Store(error) = &error {
            log(error, STORE);
        }
        let text = error.to_string();
        let mut letters = text.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).collect();
        Self::failed(format_args!("Error: {sentence}"))
    }
}

impl GraphError {
    /// For a caller that wanted to read `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::NotFound(_) => Fault::ResourceNotFound(uri),
            Self::Store(error) => unreadable(&error, STORE),
            other => Fault::Internal(other.to_string()),
        }
    }
}
