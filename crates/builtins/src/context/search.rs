//! Searches nodes with several scorers, whose rankings are fused.
//!
//! Scores of different scorers cannot be compared, but ranks can. So each scorer ranks the nodes
//! that it found, and a node gets `weight / (rank + 60)` from each of them: reciprocal rank fusion.

use std::collections::HashMap;

use plexus_mcp_store::rusqlite::{Connection, OptionalExtension};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::index::{Filter, Index, Ranking, Slot};
use super::link;
use super::node::{Modality, Node, excerpt};
use super::text::distinct_words;
use super::vector::Vector;

/// Added to each rank in reciprocal rank fusion, so that the first few ranks differ little.
const RANK_OFFSET: f32 = 60.0;
const WORDS_WEIGHT: f32 = 1.0;
const VECTOR_WEIGHT: f32 = 0.6;
const LINKS_WEIGHT: f32 = 0.4;

/// The most that importance changes a score: 0.1 is about a few ranks.
const IMPORTANCE_WEIGHT: f32 = 0.1;

/// The maximum number of nodes that each scorer ranks.
const RANKING_DEPTH: usize = 200;

/// The number of best hits from which links are followed.
const MAX_SEEDS: usize = 10;

/// The maximum size of the content that is shown of a hit, in bytes; see [`Node::EXCERPT_COLUMNS`].
const EXCERPT_BYTES: usize = 2_000;

/// A word is too common to search for if more nodes than this, and more than half of all, have it.
const TOO_BROAD_MIN_NODES: usize = 50;

/// The maximum number of hits for `context.query`.
const QUERY_LIMIT: u32 = 10;

/// A search request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Search {
    /// The search text, in any words.
    pub query: String,
    /// The maximum number of nodes.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// Only nodes of this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only nodes with all of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Only nodes with this kind of content.
    #[serde(default)]
    pub modality: Option<Modality>,
    /// Only nodes that were stored within this many hours.
    #[serde(default)]
    #[schemars(range(min = 1, max = 876_000))]
    pub last_hours: Option<u32>,
    /// Only nodes that were stored within this many days.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36_500))]
    pub last_days: Option<u32>,
    /// Whether to include the rank that each scorer gave each node.
    #[serde(default)]
    pub breakdown: bool,
}

impl Search {
    /// A search for `query` in all nodes.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            limit: default_limit(),
            ..Self::default()
        }
    }

    fn filter(&self, now: i64) -> Filter {
        let hour = 3_600_000;
        let hours = self.last_hours.map(|hours| i64::from(hours) * hour);
        let days = self.last_days.map(|days| i64::from(days) * 24 * hour);
        let period = hours.into_iter().chain(days).min();
        Filter {
            namespace: self.namespace.clone(),
            tags: self.tags.clone(),
            modality: self.modality,
            updated_since: period.map(|period| now - period),
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct SearchResults {
    /// The nodes that were found, the best first.
    pub results: Vec<Hit>,
    /// The number of nodes.
    pub count: usize,
}

/// A node that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Hit {
    /// The node. Long content is cut.
    pub node: Node,
    /// Whether the content was cut.
    pub truncated: bool,
    /// The score. It only orders the hits of one search, and has no meaning beyond.
    pub score: f64,
    /// The ranks that the scorers gave the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// The rank that each scorer gave a node. A scorer that did not find the node is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Breakdown {
    /// By words: BM25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Rank>,
    /// By vector: cosine similarity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<Rank>,
    /// By links to other hits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Rank>,
}

/// The rank and score that one scorer gave a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rank {
    /// The rank, from 1.
    pub rank: usize,
    /// The score.
    pub score: f64,
}

impl Graph {
    /// Finds nodes. A query without a meaningful word finds nothing.
    ///
    /// The same graph and the same query give the same result, in every process.
    pub async fn search(&self, search: Search) -> Result<SearchResults, GraphError> {
        self.find_with(search, |_, _| Ok(())).await
    }

    /// Searches with the defaults. The query must have a word that distinguishes nodes (S000-23).
    pub async fn query(&self, query: &str) -> Result<SearchResults, GraphError> {
        let mut search = Search::new(query);
        search.limit = QUERY_LIMIT;
        self.find_with(search, check_breadth).await
    }

    async fn find_with(
        &self,
        search: Search,
        check: fn(&Index<'_>, &[String]) -> Result<(), GraphError>,
    ) -> Result<SearchResults, GraphError> {
        let words = distinct_words(&search.query);
        let vector = if words.is_empty() {
            None
        } else {
            self.vectorize(search.query.clone()).await
        };
        let threshold = self.vectorizer().threshold();
        let filter = search.filter(self.now());
        self.with_index(move |db, index| {
            check(index, &words)?;
            let eligible = index.eligible(&filter)?;
            let input = ScorerInput {
                words: &words,
                vector: vector.as_ref().map(|vector| (vector, threshold)),
                eligible: &eligible,
            };
            found(db, index, &Rankings::compute(db, index, &input)?, &search)
        })
        .await
    }
}

/// The input of all scorers.
struct ScorerInput<'a> {
    words: &'a [String],
    vector: Option<(&'a Vector, f32)>,
    eligible: &'a [bool],
}

/// The rankings of all scorers.
struct Rankings {
    words: Ranking,
    vector: Ranking,
    links: Ranking,
}

impl Rankings {
    fn compute(
        db: &Connection,
        index: &Index<'_>,
        input: &ScorerInput<'_>,
    ) -> Result<Self, GraphError> {
        let eligible = input.eligible;
        let vector = match input.vector {
            Some((vector, threshold)) => {
                index.by_vector(vector, threshold, eligible, RANKING_DEPTH)?
            }
            None => Ranking::new(),
        };
        let mut rankings = Self {
            words: index.by_words(input.words, eligible, RANKING_DEPTH)?,
            vector,
            links: Ranking::new(),
        };
        let seeds = index.best(rankings.fused(), MAX_SEEDS);
        rankings.links = link::proximity(db, index, &seeds, eligible, RANKING_DEPTH)?;
        Ok(rankings)
    }

    fn fused(&self) -> Ranking {
        let rankings = [
            (WORDS_WEIGHT, &self.words),
            (VECTOR_WEIGHT, &self.vector),
            (LINKS_WEIGHT, &self.links),
        ];
        let mut fused: HashMap<Slot, f32> = HashMap::new();
        for (weight, ranking) in rankings {
            let mut rank = RANK_OFFSET;
            for &(slot, _) in ranking {
                rank += 1.0;
                *fused.entry(slot).or_default() += weight / rank;
            }
        }
        fused.into_iter().collect()
    }

    fn breakdown(&self, slot: Slot) -> Breakdown {
        let rank = |ranking: &Ranking| {
            let (rank, score) = (1..)
                .zip(ranking)
                .find_map(|(rank, &(ranked, score))| (ranked == slot).then_some((rank, score)))?;
            let score = rounded(score);
            Some(Rank { rank, score })
        };
        Breakdown {
            words: rank(&self.words),
            vector: rank(&self.vector),
            links: rank(&self.links),
        }
    }
}

fn found(
    db: &Connection,
    index: &Index<'_>,
    rankings: &Rankings,
    search: &Search,
) -> Result<SearchResults, GraphError> {
    let mut fused = rankings.fused();
    for (slot, score) in &mut fused {
        let importance = index.importance(*slot).unwrap_or(0.5);
        *score *= 1.0 + IMPORTANCE_WEIGHT * (2.0 * importance - 1.0);
    }
    let limit = usize::try_from(search.limit.clamp(1, 100)).unwrap_or(1);
    let mut results = Vec::new();
    for (slot, score) in index.best(fused, limit) {
        let Some(id) = index.id(slot)? else {
            continue;
        };
        let Some((node, truncated)) = beginning(db, &id)? else {
            continue;
        };
        results.push(Hit {
            node,
            truncated,
            score: rounded(score),
            breakdown: search.breakdown.then(|| rankings.breakdown(slot)),
        });
    }
    let count = results.len();
    Ok(SearchResults { results, count })
}

/// A node with the beginning of its content, and whether the content was cut.
fn beginning(db: &Connection, id: &str) -> Result<Option<(Node, bool)>, GraphError> {
    let columns = Node::EXCERPT_COLUMNS;
    let node = db
        .prepare_cached(&format!(
            "SELECT {columns} FROM context_nodes WHERE id = ?1 AND state = 'live'"
        ))?
        .query_row([id], Node::read)
        .optional()?;
    Ok(node.map(|mut node| {
        let truncated = node.content.len() > EXCERPT_BYTES;
        if truncated {
            node.content = excerpt(&node.content, EXCERPT_BYTES);
        }
        (node, truncated)
    }))
}

/// S000-23: a query is too broad if all of its words are stop words, or words that most nodes have.
fn check_breadth(index: &Index<'_>, words: &[String]) -> Result<(), GraphError> {
    let frequencies = words.iter().map(|word| index.frequency(word));
    let frequencies = frequencies.collect::<Result<Vec<_>, _>>()?;
    let is_broad = |rarest: usize| rarest > TOO_BROAD_MIN_NODES && rarest > index.len() / 2;
    match frequencies.into_iter().filter(|&count| count > 0).min() {
        _ if words.is_empty() => Err(GraphError::TooBroad),
        Some(rarest) if is_broad(rarest) => Err(GraphError::TooBroad),
        _ => Ok(()),
    }
}

/// Rounds a score to six digits, for readability.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1e6).round() / 1e6
}

fn default_limit() -> u32 {
    10
}
