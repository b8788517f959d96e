//! Proposes pairs of similar nodes to merge. It merges nothing.

use std::collections::HashMap;

use plexus_mcp_store::rusqlite::{self, Connection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::node::{Strings, searchable};
use super::text::for_each_word;
use super::vector::Vector;

/// The maximum number of nodes that are compared with each other, the newest first. This makes
/// half a million pairs, which take well under a second.
const MAX_COMPARED_NODES: u32 = 1_000;

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
        // Semantic and temporal proposals need vectors.
        self.complete_index().await;
        let vectorizer = self.vectorizer().name().to_owned();
        self.read(move |db| {
            let candidates = candidates(db, request.namespace.as_deref(), &vectorizer)?;
            Ok(proposed(&candidates, &request))
        })
        .await
    }
}

struct Candidate {
    id: String,
    namespace: String,
    updated_at: i64,
    /// The numbers of the distinct words, sorted.
    words: Vec<usize>,
    vector: Option<Vector>,
}

fn proposed(candidates: &[Candidate], request: &Consolidate) -> Consolidation {
    let mut proposals = Vec::new();
    for (at, a) in candidates.iter().enumerate() {
        for b in candidates.iter().skip(at + 1) {
            if a.namespace != b.namespace {
                continue;
            }
            let similarity = similarity(request.strategy, a, b);
            if similarity < request.min_similarity {
                continue;
            }
            let mut ids = [a.id.clone(), b.id.clone()];
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

/// The newest live nodes.
fn candidates(
    db: &Connection,
    namespace: Option<&str>,
    vectorizer: &str,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = db.prepare_cached(
        "SELECT id, namespace, key, tags, content, updated_at,
             CASE embedder WHEN ?2 THEN vector END AS vector
         FROM context_nodes WHERE state = 'live' AND (?1 IS NULL OR namespace = ?1)
         ORDER BY updated_at DESC, id LIMIT ?3",
    )?;
    let mut numbers = HashMap::new();
    let nodes = statement.query_map((namespace, vectorizer, MAX_COMPARED_NODES), |row| {
        let key: Option<String> = row.get("key")?;
        let tags = row.get::<_, Strings>("tags")?.0;
        let text = searchable(key.as_deref(), &tags, row.get_ref("content")?.as_str()?);
        let vector: Option<Vec<u8>> = row.get("vector")?;
        Ok(Candidate {
            id: row.get("id")?,
            namespace: row.get("namespace")?,
            updated_at: row.get("updated_at")?,
            words: word_numbers(&text, &mut numbers),
            vector: vector.as_deref().map(Vector::from_bytes),
        })
    })?;
    nodes.collect()
}

/// The distinct words of a text as numbers, sorted.
fn word_numbers(text: &str, numbers: &mut HashMap<String, usize>) -> Vec<usize> {
    let mut words = Vec::new();
    for_each_word(text, |word| {
        let number = numbers.get(word).copied().unwrap_or_else(|| {
            let next = numbers.len();
            numbers.insert(word.to_owned(), next);
            next
        });
        words.push(number);
    });
    words.sort_unstable();
    words.dedup();
    words
}

fn similarity(strategy: ConsolidationStrategy, a: &Candidate, b: &Candidate) -> f32 {
    let apart = a.updated_at.abs_diff(b.updated_at);
    match strategy {
        ConsolidationStrategy::Similarity => shared(&a.words, &b.words),
        ConsolidationStrategy::Temporal if apart > TEMPORAL_WINDOW_MS => 0.0,
        ConsolidationStrategy::Temporal | ConsolidationStrategy::Semantic => {
            match (&a.vector, &b.vector) {
                (Some(a), Some(b)) => a.cosine(b),
                _ => 0.0,
            }
        }
    }
}

/// The Jaccard similarity of two sorted lists of words: common words divided by all words.
#[expect(
    clippy::cast_precision_loss,
    reason = "a similarity needs no more bits"
)]
fn shared(a: &[usize], b: &[usize]) -> f32 {
    let is_common = |word: &&usize| b.binary_search(word).is_ok();
    let common = a.iter().filter(is_common).count();
    let all = a.len() + b.len() - common;
    common as f32 / all.max(1) as f32
}

fn default_similarity() -> f32 {
    0.925
}

fn default_max() -> u32 {
    20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_words_are_a_part_of_all_words() {
        let mut numbers = HashMap::new();
        let mut words = |text| word_numbers(text, &mut numbers);
        let (a, b) = (words("token rotation token"), words("token storage"));
        assert!((shared(&a, &b) - 1.0 / 3.0).abs() < 1e-6);
        assert!((shared(&a, &a) - 1.0).abs() < 1e-6);
        assert!(shared(&words(""), &words("")).abs() < f32::EPSILON);
    }
}
