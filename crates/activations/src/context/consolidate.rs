//! Nodes that may be worth merging. Nothing is merged here: that is for somebody to decide.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::index::{Document, Index, Place};
use super::vector::Vector;

/// How many nodes are compared with each other, the newest first: half a million pairs, which is
/// a moment's work.
const MAX_COMPARED: usize = 1_000;

/// How near in time two nodes must be stored to belong to one occasion, in milliseconds.
const OCCASION: u64 = 3_600_000;

/// When nodes may be worth merging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the strategies that the documents name"
)]
pub enum ConsolidationStrategy {
    /// If they have most of their words in common.
    #[default]
    Similarity,
    /// If their vectors are similar, and they were stored within an hour.
    Temporal,
    /// If their vectors are similar.
    Semantic,
}

/// Where to look for nodes that may be worth merging.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Consolidate {
    /// When two nodes may be worth merging: similarity compares their words, semantic their
    /// vectors, temporal the vectors of those stored within an hour.
    #[serde(default)]
    pub strategy: ConsolidationStrategy,
    /// How similar they must be at least.
    #[serde(default = "default_similarity")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_similarity: f32,
    /// Only in this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// How many pairs to propose at most.
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

/// What may be worth merging.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Consolidation {
    /// Pairs of nodes, the most similar first. Nothing was merged.
    pub proposals: Vec<Proposal>,
    /// How many nodes were compared with each other; of many, only the newest are.
    pub compared: usize,
}

/// Two nodes that may be worth merging.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Proposal {
    /// The two nodes.
    pub ids: [String; 2],
    /// How similar they are.
    pub similarity: f64,
}

impl Graph {
    /// Proposes nodes to merge. Only nodes of one namespace can be merged, so only such are
    /// proposed.
    pub async fn consolidate(&self, request: Consolidate) -> Result<Consolidation, GraphError> {
        self.with_index(move |_, index| Ok(proposed(index, &request)))
            .await
    }
}

struct Candidate<'a> {
    place: Place,
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
    let mut places: Vec<(Place, &Document)> = index
        .documents()
        .filter(|(_, document)| wanted(document))
        .collect();
    places.sort_by_key(|(_, document)| (Reverse(document.updated_at), &document.id));
    places.truncate(MAX_COMPARED);
    let candidate = |(place, document)| Candidate {
        place,
        document,
        vector: index.vector(place),
    };
    places.into_iter().map(candidate).collect()
}

fn similarity(
    index: &Index,
    strategy: ConsolidationStrategy,
    a: &Candidate<'_>,
    b: &Candidate<'_>,
) -> f32 {
    let apart = a.document.updated_at.abs_diff(b.document.updated_at);
    match strategy {
        ConsolidationStrategy::Similarity => index.shared_words(a.place, b.place),
        ConsolidationStrategy::Temporal if apart > OCCASION => 0.0,
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
