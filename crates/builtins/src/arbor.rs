//! Trees of texts, for conversations that can branch, be rewound, and be shared.
//!
//! A tree has an empty root and [`TreeNode`]s under it. A node holds a text, or a [`Handle`] that
//! points to data of another service. Nodes are only ever added, each to a parent of the same
//! tree, so there are no cycles, and the path to a node never changes.
//!
//! Owners hold references to trees. A tree without references is scheduled for archiving: for
//! [`ARCHIVE_GRACE_PERIOD`] it can be claimed again, then it is archived, which means that it can be
//! read but no longer changed. Nothing is deleted.
//!
//! The head of a tree is the node where its conversation continues: the node that was set as head
//! or, if none was, the newest node.
//!
//! [`arbor`] adds the tools and resources; [`Trees`] reads and changes the stored trees.

mod error;
mod handle;
mod model;
mod render;
mod resources;
mod tables;
mod tools;
mod trees;

pub use crate::notifying_store::Clock;
pub use error::ArborError;
pub use handle::{Handle, InvalidHandle};
pub use model::{Owner, Skeleton, SkeletonNode, State, Tree, TreeNode, TreeSummary};
pub use tables::MIGRATIONS;
pub use tools::arbor;
pub use trees::{ARCHIVE_GRACE_PERIOD, MAX_CONTENT_BYTES, NewTreeNode, Payload, Resolver, Trees};

pub(crate) use resources::resource_hash;
pub use tables::tree as summary_in;
pub use trees::{WriteTransaction, path_nodes};
