//! Proposes pairs of similar nodes to merge. It merges nothing.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::index::{Document, Index, Slot};
use super::vector::Vector;

/// The maximum number of nodes that are compared with each other, the newest first. This makes
/// half a million pairs, which take well under a second.
const MAX_COMPARED_NODES: usize = 1_000;

/// The maximum time between two nodes for the temporal strategy, in milliseconds.
const TEMPORAL_WINDOW_MS: u64 = 3_600_000;

/// The test by which two nodes are proposed for merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the strategies are fixed by the specification"
)]
pub enum ConsolidationStrategy {
    /// Most words of the two nodes are the same.
    #[default]
    Similarity,
    /// The vectors of the two nodes are similar, and the nodes were stored within an hour.
    Temporal,
    /// The vectors of the two nodes are similar.
    Semantic,
}

/// How to search for nodes to merge.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Consolidate {
    /// The test by which two nodes are proposed: similarity compares their words, semantic their
    /// vectors, temporal the vectors of nodes stored within an hour.
    #[serde(default)]
    pub strategy: ConsolidationStrategy,
    /// The minimum similarity of two nodes.
    #[serde(default = "default_similarity")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_similarity: f32,
    /// Only nodes of this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The maximum number of pairs.
    #[serde(default = "default_max")]
    #[schemars(range(min = 1, max = 100))]
    pub max: u32,
}

impl Default for Consolidate {
    fn default() -> Self {
        Self {
            strategy: ConsolidationStrategy::default(),
            min_similarity: default_similarity(),
            namespace: None,
            max: default_max(),
        }
    }
}

/// Proposals for merging.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Consolidation {
    /// Pairs of nodes, the most similar first. Nothing was merged.
    pub proposals: Vec<Proposal>,
    /// The number of nodes that were compared with each other. In a large graph, only the newest are.
    pub compared: usize,
}

/// Two nodes that may be worth merging.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Proposal {
    /// The ids of the two nodes.
    pub ids: [String; 2],
    /// The similarity of the two nodes.
    pub similarity: f64,
}

impl Graph {
    /// Proposes pairs of nodes to merge. Only nodes of the same namespace can be merged, so only
    /// such pairs are proposed.
    pub async fn consolidate(&self, request: Consolidate) -> Result<Consolidation, GraphError> {
        self.with_index(move |_, index| Ok(proposed(index, &request)))
            .await
    }
}

struct Candidate<'a> {
    slot: Slot,
    document: &'a Document,
    vector: Option<Vector>,
}

fn proposed(index: &Index, request: &Consolidate) -> Consolidation {
    let candidates = candidates(index, request.namespace.as_deref());
    let mut proposals = Vec::new();
    for (at, a) in candidates.iter().enumerate() {
        for b in candidates.iter().skip(at + 1) {
            if a.document.namespace != b.document.namespace {
                continue;
            }
            let similarity = similarity(index, request.strategy, a, b);
            if similarity < request.min_similarity {
                continue;
            }
            let mut ids = [a.document.id.clone(), b.document.id.clone()];
            ids.sort();
            proposals.push(Proposal {
                ids,
                similarity: (f64::from(similarity) * 1e4).round() / 1e4,
            });
        }
    }
    proposals.sort_by(|a, b| {
        let by_similarity = b.similarity.total_cmp(&a.similarity);
        by_similarity.then_with(|| a.ids.cmp(&b.ids))
    });
    proposals.truncate(usize::try_from(request.max).unwrap_or(usize::MAX));
    Consolidation {
        proposals,
        compared: candidates.len(),
    }
}

fn candidates<'a>(index: &'a Index, namespace: Option<&str>) -> Vec<Candidate<'a>> {
    let wanted = |document: &Document| namespace.is_none_or(|it| it == document.namespace);
    let mut slots: Vec<(Slot, &Document)> = index
        .documents()
        .filter(|(_, document)| wanted(document))
        .collect();
    slots.sort_by_key(|(_, document)| (Reverse(document.updated_at), &document.id));
    slots.truncate(MAX_COMPARED_NODES);
    let candidate = |(slot, document)| Candidate {
        slot,
        document,
        vector: index.vector(slot),
    };
    slots.into_iter().map(candidate).collect()
}

fn similarity(
    index: &Index,
    strategy: ConsolidationStrategy,
    a: &Candidate<'_>,
    b: &Candidate<'_>,
) -> f32 {
    let apart = a.document.updated_at.abs_diff(b.document.updated_at);
    match strategy {
        ConsolidationStrategy::Similarity => index.shared_words(a.slot, b.slot),
        ConsolidationStrategy::Temporal if apart > TEMPORAL_WINDOW_MS => 0.0,
        ConsolidationStrategy::Temporal | ConsolidationStrategy::Semantic => {
            match (&a.vector, &b.vector) {
                (Some(a), Some(b)) => a.cosine(b),
                _ => 0.0,
            }
        }
    }
}

fn default_similarity() -> f32 {
    0.925
}

fn default_max() -> u32 {
    20
}
