//! Errors of trees.

use plexus_mcp_core::{Fault, ToolError};
use plexus_mcp_store::{StoreError, rusqlite};

use crate::store_errors::{log_store_error, store_fault};

/// The owner of the store, for log messages.
const STORE_OWNER: &str = "the trees";

/// Why an operation on a tree failed. A failed operation changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArborError {
    /// No tree has this id.
    #[error("tree not found: {0}")]
    TreeNotFound(String),
    /// The tree has no node of this id.
    #[error("node {node_id} not found in tree {tree_id}")]
    NodeNotFound {
        /// The id of the tree.
        tree_id: String,
        /// The id that no node of the tree has.
        node_id: String,
    },
    /// The tree has no owner and will be archived.
    #[error("tree {tree_id} has no owner and will be archived at {until}; claim it first")]
    Scheduled {
        /// The id of the tree.
        tree_id: String,
        /// When the tree will be archived, in RFC 3339.
        until: String,
    },
    /// The tree is archived, and so can no longer be changed.
    #[error("tree {tree_id} was archived at {since}: it can be read, but not changed or claimed")]
    Archived {
        /// The id of the tree.
        tree_id: String,
        /// When the tree was archived, in RFC 3339.
        since: String,
    },
    /// An owner tried to release more references than it holds.
    #[error("{owner_id:?} holds {held} references to tree {tree_id}, so it cannot release {count}")]
    Underflow {
        /// The id of the tree.
        tree_id: String,
        /// The owner of the references.
        owner_id: String,
        /// How many references the owner holds.
        held: u64,
        /// How many references the owner tried to release.
        count: u64,
    },
    /// The number of references would exceed what the counter can hold.
    #[error("{owner_id:?} would hold too many references to tree {tree_id}")]
    Overflow {
        /// The id of the tree.
        tree_id: String,
        /// The owner of the references.
        owner_id: String,
    },
    /// A node or its metadata exceeds the size limit.
    #[error("{what} has {size} bytes, more than the maximum of {limit}; split it up")]
    TooLarge {
        /// The part that is too large, for example "the metadata".
        what: &'static str,
        /// The size of the part, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The requested nodes hold more text than one response may carry.
    #[error(
        "tree {tree_id} has {size} bytes of text there, too many for one response; get its skeleton, \
         then node by node"
    )]
    TooMuchText {
        /// The id of the tree.
        tree_id: String,
        /// The size of the text, in bytes.
        size: u64,
    },
    /// The metadata is not a JSON object.
    #[error("metadata must be a JSON object")]
    Metadata,
    /// A handle has invalid syntax.
    #[error(transparent)]
    Handle(#[from] super::handle::InvalidHandle),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArborError {
    /// Converts the error for a caller that reads the resource `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::TreeNotFound(_) | Self::NodeNotFound { .. } => Fault::ResourceNotFound(uri),
            Self::Store(error) => store_fault(&error, STORE_OWNER),
            other => Fault::Internal(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for ArborError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<ArborError> for ToolError {
    fn from(error: ArborError) -> Self {
        if let ArborError::Store(error) = &error {
            log_store_error(error, STORE_OWNER);
        }
        Self::failed(error)
    }
}
