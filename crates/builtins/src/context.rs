//! The context graph: a memory of texts that are linked and can be searched.
//!
//! A [`Graph`] stores nodes in a database. [`context`] adds its tools and resources.
//!
//! - **Nodes** are texts with a namespace and an optional key, under which a node can be replaced or
//!   read by name. The id is derived from these, so the same call made twice makes one node.
//! - **Links** go from one node to another, with a relation and a weight.
//! - **Search** fuses three rankings: BM25 over words, trigram similarity (the cosine similarity of
//!   trigram counts), and proximity by links to the nodes that these found. The result is the same
//!   in every process.
//! - **Vectors** come from a [`Vectorizer`]; the default is [`Trigrams`].
//! - **Deletion can be undone**: a forgotten node can be restored for 30 days, a merge can be undone
//!   as long, and the audit trail lists all changes with their callers.

mod audit;
mod consolidate;
mod error;
mod forget;
mod graph;
mod index;
mod link;
mod merge;
mod node;
mod nodes;
mod revisions;
mod search;
mod status;
mod tables;
mod text;
mod tools;
mod trigrams;
mod vector;

pub use audit::{Action, AuditEntry, AuditQuery, AuditTrail};
pub use consolidate::{Consolidate, Consolidation, ConsolidationStrategy, Proposal};
pub use error::GraphError;
pub use forget::{Boost, Boosted, Forget, Forgotten, Restored};
pub use graph::Graph;
pub use link::{
    Direction, Link, Linked, Neighbour, Neighbours, NeighboursQuery, Reached, Traversal, Traverse,
    Unlink, Unlinked,
};
pub use merge::{Merge, MergeStrategy, Merged, Unmerged};
pub use node::{Modality, NewNode, Node};
pub use nodes::{NodeQuery, NodeWithLinks, Stored};
pub use search::{Breakdown, Hit, Rank, Search, SearchResults};
pub use status::{GraphStatus, NamespaceStatus};
pub use tables::MIGRATIONS;
pub use tools::{context, ghost_context};
pub use trigrams::{Trigrams, VectorizeError, Vectorizer};

/// The URI of the resource of a node.
fn uri(id: &str) -> String {
    format!("context://node/{id}")
}
