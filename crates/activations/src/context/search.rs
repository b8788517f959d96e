//! Finding nodes: several scorers, one ranking.
//!
//! Scores of different scorers cannot be compared, but ranks can. So each scorer ranks what it
//! found, and a node gets `weight / (rank + 60)` from each that found it: reciprocal rank fusion.

use std::collections::HashMap;

use plexus_store::rusqlite::{Connection, OptionalExtension};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::GraphError;
use super::graph::Graph;
use super::index::{Filter, Index, Place, Ranking};
use super::link;
use super::node::{Modality, Node, excerpt};
use super::text::distinct_words;
use super::vector::Vector;

/// Makes the first few ranks differ little from each other.
const RANK_OFFSET: f32 = 60.0;
const WORDS_WEIGHT: f32 = 1.0;
const VECTOR_WEIGHT: f32 = 0.6;
const LINKS_WEIGHT: f32 = 0.4;

/// How much the most important nodes gain, and the least important lose: a few ranks.
const IMPORTANCE_WEIGHT: f32 = 0.1;

/// How many nodes each scorer ranks.
const DEPTH: usize = 200;

/// Around how many of the best hits links are followed.
const SEEDS: usize = 10;

/// How much of a hit's content is shown; see [`Node::BEGINNING`].
const EXCERPT: usize = 2_000;

/// A word that more nodes have than this, and more than half of all, tells nothing apart.
const BROAD: usize = 50;

/// How many hits a plain question gets.
const ANSWERS: u32 = 10;

/// What to look for, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Search {
    /// What to look for, in any words.
    pub query: String,
    /// How many nodes to give at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// Only in this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only nodes with all of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Only content of this kind.
    #[serde(default)]
    pub modality: Option<Modality>,
    /// Only what was stored in the last so many hours.
    #[serde(default)]
    #[schemars(range(min = 1, max = 876_000))]
    pub last_hours: Option<u32>,
    /// Only what was stored in the last so many days.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36_500))]
    pub last_days: Option<u32>,
    /// Whether to tell how each scorer ranked each node.
    #[serde(default)]
    pub breakdown: bool,
}

impl Search {
    /// For `query`, everywhere.
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

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Found {
    /// The nodes, the best first.
    pub results: Vec<Hit>,
    /// How many these are.
    pub count: usize,
}

/// A node that was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Hit {
    /// The node. Of long content there is only the beginning.
    pub node: Node,
    /// Whether there is more content than is shown.
    pub truncated: bool,
    /// How well it fits. Only the order means something, and only within one search.
    pub score: f64,
    /// What each scorer made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// What each scorer made of a node; those that did not find it are left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Breakdown {
    /// By its words: BM25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Rank>,
    /// By its vector: the cosine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<Rank>,
    /// By its links to what was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Rank>,
}

/// What one scorer made of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rank {
    /// Its rank, from 1.
    pub rank: usize,
    /// Its score.
    pub score: f64,
}

impl Graph {
    /// Finds nodes. A query without a meaningful word finds nothing.
    ///
    /// The same graph and the same query give the same answer, in every process.
    pub async fn search(&self, search: Search) -> Result<Found, GraphError> {
        self.find_with(search, |_, _| Ok(())).await
    }

    /// The same for a plain question, which must say enough to tell nodes apart (S000-23).
    pub async fn query(&self, query: &str) -> Result<Found, GraphError> {
        let mut search = Search::new(query);
        search.limit = ANSWERS;
        self.find_with(search, check_breadth).await
    }

    async fn find_with(
        &self,
        search: Search,
        check: fn(&Index, &[String]) -> Result<(), GraphError>,
    ) -> Result<Found, GraphError> {
        let words = distinct_words(&search.query);
        let vector = if words.is_empty() {
            None
        } else {
            self.embed(search.query.clone()).await
        };
        let threshold = self.embedder().threshold();
        let filter = search.filter(self.now());
        self.with_index(move |db, index| {
            check(index, &words)?;
            let eligible = index.eligible(&filter);
            let question = Question {
                words: &words,
                vector: vector.as_ref().map(|vector| (vector, threshold)),
                eligible: &eligible,
            };
            found(db, index, &Scored::by_all(db, index, &question)?, &search)
        })
        .await
    }
}

/// What all scorers are asked.
struct Question<'a> {
    words: &'a [String],
    vector: Option<(&'a Vector, f32)>,
    eligible: &'a [bool],
}

/// What all scorers found.
struct Scored {
    words: Ranking,
    vector: Ranking,
    links: Ranking,
}

impl Scored {
    fn by_all(db: &Connection, index: &Index, question: &Question<'_>) -> Result<Self, GraphError> {
        let eligible = question.eligible;
        let vector = question
            .vector
            .map(|(vector, threshold)| index.by_vector(vector, threshold, eligible, DEPTH));
        let mut scored = Self {
            words: index.by_words(question.words, eligible, DEPTH),
            vector: vector.unwrap_or_default(),
            links: Ranking::new(),
        };
        let seeds = index.best(scored.fused(), SEEDS);
        scored.links = link::proximity(db, index, &seeds, eligible, DEPTH)?;
        Ok(scored)
    }

    fn fused(&self) -> Ranking {
        let rankings = [
            (WORDS_WEIGHT, &self.words),
            (VECTOR_WEIGHT, &self.vector),
            (LINKS_WEIGHT, &self.links),
        ];
        let mut fused: HashMap<Place, f32> = HashMap::new();
        for (weight, ranking) in rankings {
            let mut rank = RANK_OFFSET;
            for &(place, _) in ranking {
                rank += 1.0;
                *fused.entry(place).or_default() += weight / rank;
            }
        }
        fused.into_iter().collect()
    }

    fn breakdown(&self, place: Place) -> Breakdown {
        let rank = |ranking: &Ranking| {
            let (rank, score) = (1..)
                .zip(ranking)
                .find_map(|(rank, &(ranked, score))| (ranked == place).then_some((rank, score)))?;
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
    index: &Index,
    scored: &Scored,
    search: &Search,
) -> Result<Found, GraphError> {
    let mut fused = scored.fused();
    for (place, score) in &mut fused {
        let importance = index
            .document(*place)
            .map_or(0.5, |document| document.importance);
        *score *= 1.0 + IMPORTANCE_WEIGHT * (2.0 * importance - 1.0);
    }
    let limit = usize::try_from(search.limit.clamp(1, 100)).unwrap_or(1);
    let mut results = Vec::new();
    for (place, score) in index.best(fused, limit) {
        let Some(document) = index.document(place) else {
            continue;
        };
        // The index may be ahead of what `db` sees.
        let Some((node, truncated)) = beginning(db, &document.id)? else {
            continue;
        };
        results.push(Hit {
            node,
            truncated,
            score: rounded(score),
            breakdown: search.breakdown.then(|| scored.breakdown(place)),
        });
    }
    let count = results.len();
    Ok(Found { results, count })
}

/// A node with the beginning of its content, and whether there is more.
fn beginning(db: &Connection, id: &str) -> Result<Option<(Node, bool)>, GraphError> {
    let columns = Node::BEGINNING;
    let node = db
        .prepare_cached(&format!(
            "SELECT {columns} FROM context_nodes WHERE id = ?1 AND state = 'live'"
        ))?
        .query_row([id], Node::read)
        .optional()?;
    Ok(node.map(|mut node| {
        let truncated = node.content.len() > EXCERPT;
        if truncated {
            node.content = excerpt(&node.content, EXCERPT);
        }
        (node, truncated)
    }))
}

/// S000-23: a question is too broad if it has no word that means something, or only such as most
/// nodes have.
fn check_breadth(index: &Index, words: &[String]) -> Result<(), GraphError> {
    let frequencies = words.iter().map(|word| index.frequency(word));
    let is_broad = |rarest: usize| rarest > BROAD && rarest > index.len() / 2;
    match frequencies.filter(|&frequency| frequency > 0).min() {
        _ if words.is_empty() => Err(GraphError::TooBroad),
        Some(rarest) if is_broad(rarest) => Err(GraphError::TooBroad),
        _ => Ok(()),
    }
}

/// Six digits are plenty, and read better.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1e6).round() / 1e6
}

fn default_limit() -> u32 {
    10
}
