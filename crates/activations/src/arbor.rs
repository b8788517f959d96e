//! Trees of texts: conversations that can branch, be rewound, and be shared.
//!
//! A tree has a root, which is empty, and [`Node`]s under it. A node is a text, or a [`Handle`] that
//! points to what another activation has. Nodes are only ever added, each to a parent of its own
//! tree, so there are no cycles and no path changes once it is there.
//!
//! Trees have owners, who hold references to them. A tree that nobody holds any more is scheduled:
//! for [`GRACE`] it can be claimed again, then it is archived, which means that it can be read but no
//! longer changed. Nothing is ever deleted.
//!
//! The head of a tree is where its conversation goes on: where its owner has put it or, if nobody
//! did, the newest node.
//!
//! [`arbor`] adds the tools and resources, [`Trees`] is where the trees are.

mod error;
mod handle;
mod model;
mod render;
mod resources;
mod tables;
mod tools;
mod trees;

pub use crate::ledger::Clock;
pub use error::ArborError;
pub use handle::{Handle, InvalidHandle};
pub use model::{Node, Owner, Skeleton, SkeletonNode, State, Tree, TreeSummary};
pub use tables::MIGRATIONS;
pub use tools::arbor;
pub use trees::{GRACE, MAX_CONTENT, NewNode, Payload, Resolver, Trees};

pub(crate) use resources::state;
pub(crate) use tables::tree as summary_in;
pub(crate) use trees::{Change, path_nodes};
