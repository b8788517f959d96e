//! Walks of several links.

use std::collections::HashMap;

use plexus_store::rusqlite::{self, Connection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Along, Direction, adjacent};
use crate::context::error::GraphError;
use crate::context::graph::Graph;
use crate::context::index::{Index, Place, Ranking};
use crate::context::remember::require;

/// What is left of a score after each link (§3.1).
const ATTENUATION: f64 = 0.9;

/// How many nodes a walk looks around at after each step, the best first: enough for any graph
/// that a person made, and an end to walks in one that a program made.
const BREADTH: usize = 200;

/// How many links of one node are followed, the strongest first.
const DEGREE: u32 = 200;

/// Where to walk.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Traverse {
    /// Where to begin.
    pub id: String,
    /// How many links to follow at most.
    #[serde(default = "default_hops")]
    #[schemars(range(min = 1, max = 5))]
    pub max_hops: u32,
    /// Only along links of at least this weight.
    #[serde(default = "default_min_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_weight: f64,
    /// How many nodes to give at most, the nearest first.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = 100))]
    pub max_results: u32,
    /// Which way to follow links.
    #[serde(default = "outward")]
    pub direction: Direction,
    /// Only along links of this relation.
    #[serde(default)]
    pub relation: Option<String>,
}

/// Where a walk leads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Traversal {
    /// The nodes, the nearest first.
    pub nodes: Vec<Reached>,
    /// How many these are.
    pub count: usize,
}

/// A node at the end of a walk.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Reached {
    /// The node.
    pub id: String,
    /// How near it is, from 0 to 1: the product of the weights on the best way, and of 0.9 for
    /// each link.
    pub score: f64,
    /// How many links the best way has.
    pub hops: usize,
    /// The best way: all nodes on it, both ends included.
    pub path: Vec<String>,
    /// How the node's content begins.
    pub excerpt: String,
}

impl Graph {
    /// Follows links from a node.
    pub async fn traverse(&self, request: Traverse) -> Result<Traversal, GraphError> {
        self.read(move |db| {
            require(db, &request.id)?;
            let along = Along {
                direction: request.direction,
                relation: request.relation,
                min_weight: request.min_weight,
            };
            let start = HashMap::from([(request.id.clone(), 1.0)]);
            let mut nodes = walk(db, &start, &along, request.max_hops.min(5))?;
            nodes.retain(|node| node.id != request.id);
            nodes.truncate(usize::try_from(request.max_results).unwrap_or(usize::MAX));
            let count = nodes.len();
            Ok(Traversal { nodes, count })
        })
        .await
    }
}

/// Ranks what is up to two links away from the best hits of a search, and is eligible.
pub(in crate::context) fn proximity(
    db: &Connection,
    index: &Index,
    hits: &[(Place, f32)],
    eligible: &[bool],
    limit: usize,
) -> rusqlite::Result<Ranking> {
    let starts = hits
        .iter()
        .filter_map(|&(place, score)| Some((index.document(place)?.id.clone(), f64::from(score))));
    let reached = walk(db, &starts.collect(), &Along::default(), 2)?;
    let places = reached.into_iter().filter_map(|node| {
        let place = index.place(&node.id)?;
        let eligible = eligible.get(place).is_some_and(|&eligible| eligible);
        (eligible && node.score > 0.0).then_some((place, single(node.score)))
    });
    Ok(index.best(places, limit))
}

/// What can be reached from `starts` by one to `hops` links, the best scores first. A start counts
/// only as far as it is reached from another.
fn walk(
    db: &Connection,
    starts: &HashMap<String, f64>,
    along: &Along,
    hops: u32,
) -> rusqlite::Result<Vec<Reached>> {
    let start = |(id, &score): (&String, &f64)| Reached {
        id: id.clone(),
        score,
        hops: 0,
        path: vec![id.clone()],
        excerpt: String::new(),
    };
    let mut frontier: Vec<Reached> = starts.iter().map(start).collect();
    let mut best: HashMap<String, Reached> = HashMap::new();
    for _ in 0..hops {
        best_first(&mut frontier);
        frontier.truncate(BREADTH);
        let mut next = HashMap::new();
        for from in &frontier {
            for neighbour in adjacent(db, &from.id, along, DEGREE)? {
                let score = from.score * neighbour.weight * ATTENUATION;
                let known = best.get(&neighbour.id);
                let turns_back = from.path.contains(&neighbour.id);
                if turns_back || known.is_some_and(|known| known.score >= score) {
                    continue;
                }
                let mut path = from.path.clone();
                path.push(neighbour.id.clone());
                let reached = Reached {
                    id: neighbour.id.clone(),
                    score,
                    hops: from.hops + 1,
                    path,
                    excerpt: neighbour.excerpt,
                };
                best.insert(neighbour.id.clone(), reached.clone());
                next.insert(neighbour.id, reached);
            }
        }
        frontier = next.into_values().collect();
    }
    let mut reached: Vec<Reached> = best.into_values().collect();
    best_first(&mut reached);
    Ok(reached)
}

fn best_first(nodes: &mut [Reached]) {
    nodes.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the index compares in single precision"
)]
fn single(score: f64) -> f32 {
    score as f32
}

fn default_hops() -> u32 {
    2
}

fn default_min_weight() -> f64 {
    0.3
}

fn default_results() -> u32 {
    50
}

fn outward() -> Direction {
    Direction::Out
}
