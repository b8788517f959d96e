//! Errors of the context graph.

use plexus_mcp_core::{Fault, ToolError};
use plexus_mcp_store::{StoreError, rusqlite};

use crate::store_errors::{log_store_error, store_fault};

/// The owner of the store, for log messages.
const STORE_OWNER: &str = "the context graph";

/// Why an operation on the graph failed. A failed operation changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// No node has this id, or the node is forgotten.
    #[error("context node not found: {0}")]
    NotFound(String),
    /// The query has too few words to search for (S000-23).
    #[error("query too broad, please be more specific")]
    TooBroad,
    /// An argument has an invalid value.
    #[error("{member} must be {rule}")]
    Invalid {
        /// The name of the argument.
        member: &'static str,
        /// The condition that the value must satisfy.
        rule: &'static str,
    },
    /// No merge with this hash can be undone.
    #[error("there is no merge to undo with the hash {0}")]
    UnknownMerge(String),
    /// Another node has the key that the merged node was to get.
    #[error("the key {0:?} is taken")]
    KeyTaken(String),
    /// A merge of common lines would be empty.
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

/// The text begins as the specification has it: "Error: Query too broad, please be more specific".
impl From<GraphError> for ToolError {
    fn from(error: GraphError) -> Self {
        if let GraphError::Store(error) = &error {
            log_store_error(error, STORE_OWNER);
        }
        let text = error.to_string();
        let mut letters = text.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).collect();
        Self::failed(format_args!("Error: {sentence}"))
    }
}

impl GraphError {
    /// Converts the error for a caller that reads the resource `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::NotFound(_) => Fault::ResourceNotFound(uri),
            Self::Store(error) => store_fault(&error, STORE_OWNER),
            other => Fault::Internal(other.to_string()),
        }
    }
}
