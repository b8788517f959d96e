//! Remembers texts, links them, and finds them again: the context graph.
//!
//! A [`Graph`] keeps nodes in a store. [`context`] shows it as tools and resources.
//!
//! - **Nodes** are texts with a namespace and, if they are to be replaced or got back by name, a
//!   key. The id comes from these, so the same call made twice makes one node.
//! - **Links** go from one node to another, with a relation and a weight.
//! - **Search** asks several scorers and fuses their rankings: BM25 over words, the cosine of
//!   vectors, and nearness to what these found. The answer is the same in every process.
//! - **Vectors** come from an [`Embedder`]: [`Trigrams`] unless another is given.
//! - **Nothing is lost by accident**: what is forgotten can be restored for 30 days, a merge can
//!   be undone as long, and the audit trail says who did what.

mod audit;
mod consolidate;
mod embed;
mod error;
mod forget;
mod graph;
mod index;
mod link;
mod merge;
mod node;
mod remember;
mod search;
mod status;
mod sync;
mod tables;
mod text;
mod tools;
mod vector;

pub use audit::{Action, AuditEntry, AuditQuery, AuditTrail};
pub use consolidate::{Consolidate, Consolidation, ConsolidationStrategy, Proposal};
pub use embed::{EmbedError, Embedder, Trigrams};
pub use error::GraphError;
pub use forget::{Boost, Boosted, Forget, Forgotten, Restored};
pub use graph::Graph;
pub use link::{
    Direction, Link, Linked, Neighbour, Neighbours, NeighboursQuery, Reached, Traversal, Traverse,
    Unlink, Unlinked,
};
pub use merge::{Merge, MergeStrategy, Merged, Unmerged};
pub use node::{Modality, NewNode, Node};
pub use remember::{NodeQuery, NodeWithLinks, Stored};
pub use search::{Breakdown, Found, Hit, Rank, Search};
pub use status::{NamespaceStatus, Status};
pub use tables::MIGRATIONS;
pub use tools::{context, founding_context};

/// The resource of a node.
fn uri(id: &str) -> String {
    format!("context://node/{id}")
}
