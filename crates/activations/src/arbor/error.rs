//! What can go wrong with trees.

use plexus_service::{Fault, ToolError};
use plexus_store::{StoreError, rusqlite};

use crate::trouble::{log, unreadable};

/// Whose store it is that fails.
const STORE: &str = "the trees";

/// Why something was not done to a tree. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArborError {
    /// There is no such tree.
    #[error("tree not found: {0}")]
    TreeNotFound(String),
    /// There is no such node in the tree.
    #[error("node {node_id} not found in tree {tree_id}")]
    NodeNotFound {
        /// The tree.
        tree_id: String,
        /// What is not in it.
        node_id: String,
    },
    /// Nobody holds the tree, so it will not stay.
    #[error("tree {tree_id} is held by nobody and will be archived at {until}; claim it first")]
    Scheduled {
        /// The tree.
        tree_id: String,
        /// Until when it can be claimed.
        until: String,
    },
    /// The tree can no longer be changed.
    #[error("tree {tree_id} was archived at {since}: it can be read, but not changed or claimed")]
    Archived {
        /// The tree.
        tree_id: String,
        /// Since when.
        since: String,
    },
    /// More references were to be released than there are.
    #[error("{owner_id:?} holds {held} references to tree {tree_id}, so it cannot release {count}")]
    Underflow {
        /// The tree.
        tree_id: String,
        /// Whose references.
        owner_id: String,
        /// How many there are.
        held: u64,
        /// How many were to be released.
        count: u64,
    },
    /// More references than can be counted.
    #[error("{owner_id:?} would hold too many references to tree {tree_id}")]
    Overflow {
        /// The tree.
        tree_id: String,
        /// Whose references.
        owner_id: String,
    },
    /// A node or metadata is larger than is kept.
    #[error("{what} has {size} bytes, but at most {limit} are kept; split it up")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// The most that is kept.
        limit: usize,
    },
    /// More text than one answer can carry.
    #[error(
        "tree {tree_id} has {size} bytes of text there, too many for one answer; get its skeleton, \
         then node by node"
    )]
    TooMuchText {
        /// The tree.
        tree_id: String,
        /// How much it would be.
        size: u64,
    },
    /// Metadata is no JSON object.
    #[error("metadata must be a JSON object")]
    Metadata,
    /// A handle is not written as handles are.
    #[error(transparent)]
    Handle(#[from] super::handle::InvalidHandle),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArborError {
    /// For a caller that wanted to read `uri`.
    pub(super) fn into_fault(self, uri: String) -> Fault {
        match self {
            Self::TreeNotFound(_) | Self::NodeNotFound { .. } => Fault::ResourceNotFound(uri),
            Self::Store(error) => unreadable(&error, STORE),
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
            log(error, STORE);
        }
        Self::failed(error)
    }
}
