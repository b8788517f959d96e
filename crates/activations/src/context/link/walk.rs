//! Walks of several links.

use std::collections::HashMap;

use plexus_store::rusqlite::{self, Connection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Along, Direction, Neighbour, adjacent};
use crate::context::error::GraphError;
use crate::context::graph::Graph;
use crate::context::index::{Index, Place, Ranking};
use crate::context::remember::require;

/// What is left of a score after each link (§3.1).
const ATTENUATION: f64 = 0.9;

/// How many nodes a walk looks around at after each step, the best first: enough for any graph
/// that a person made, and an end to walks in one that a program made.
const BREADTH: usize = 200;

/// The same for a search, which has less time.
const NEARBY: usize = 30;

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
            let mut excerpts = HashMap::new();
            let start = Way::from(request.id.clone(), 1.0);
            let mut ways = walk(vec![start], request.max_hops.min(5), BREADTH, |id| {
                let neighbours = adjacent(db, id, &along, DEGREE)?;
                let step = |neighbour: Neighbour| {
                    excerpts.insert(neighbour.id.clone(), neighbour.excerpt);
                    (neighbour.id, neighbour.weight)
                };
                Ok(neighbours.into_iter().map(step).collect())
            })?;
            ways.truncate(usize::try_from(request.max_results).unwrap_or(usize::MAX));
            let reached = |way: Way| Reached {
                score: way.score,
                hops: way.nodes.len() - 1,
                excerpt: excerpts.remove(&way.end).unwrap_or_default(),
                id: way.end,
                path: way.nodes,
            };
            let nodes: Vec<Reached> = ways.into_iter().map(reached).collect();
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
    let start = |&(place, score): &(Place, f32)| {
        let document = index.document(place)?;
        Some(Way::from(document.id.clone(), f64::from(score)))
    };
    // The index knows which nodes are there, so the links alone are read.
    let mut links = db.prepare_cached(
        "SELECT target AS other, weight FROM context_links WHERE source = ?1
         UNION ALL SELECT source, weight FROM context_links WHERE target = ?1
         ORDER BY weight DESC, other LIMIT ?2",
    )?;
    let starts = hits.iter().filter_map(start).collect();
    let ways = walk(starts, 2, NEARBY, |id| {
        let steps = links.query_map((id, DEGREE), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_live = |(id, _): &(String, f64)| index.place(id).is_some();
        let steps = steps.filter(|step| step.as_ref().map_or(true, is_live));
        steps.collect()
    })?;
    let places = ways.into_iter().filter_map(|way| {
        let place = index.place(&way.end)?;
        let eligible = eligible.get(place).is_some_and(|&eligible| eligible);
        (eligible && way.score > 0.0).then_some((place, single(way.score)))
    });
    Ok(index.best(places, limit))
}

/// A way along links, and what is left of the score at its end.
#[derive(Debug, Clone)]
struct Way {
    end: String,
    score: f64,
    /// All nodes on it, both ends included.
    nodes: Vec<String>,
}

impl Way {
    fn from(start: String, score: f64) -> Self {
        Self {
            nodes: vec![start.clone()],
            end: start,
            score,
        }
    }

    fn extended(&self, end: String, weight: f64) -> Self {
        let mut nodes = self.nodes.clone();
        nodes.push(end.clone());
        Self {
            end,
            score: self.score * weight * ATTENUATION,
            nodes,
        }
    }
}

/// The best ways from `starts` to whatever is reached by one to `hops` links, the best first. After
/// each link, only the `breadth` best ways go on. A start counts only as far as it is reached from
/// another.
fn walk(
    starts: Vec<Way>,
    hops: u32,
    breadth: usize,
    mut steps: impl FnMut(&str) -> rusqlite::Result<Vec<(String, f64)>>,
) -> rusqlite::Result<Vec<Way>> {
    let mut frontier = starts;
    let mut best: HashMap<String, Way> = HashMap::new();
    for _ in 0..hops {
        best_first(&mut frontier);
        frontier.truncate(breadth);
        let mut next = HashMap::new();
        for way in &frontier {
            for (end, weight) in steps(&way.end)? {
                let extended = way.extended(end.clone(), weight);
                let known = best.get(&end);
                let turns_back = way.nodes.contains(&end);
                if turns_back || known.is_some_and(|known| known.score >= extended.score) {
                    continue;
                }
                best.insert(end.clone(), extended.clone());
                next.insert(end, extended);
            }
        }
        frontier = next.into_values().collect();
    }
    let mut ways: Vec<Way> = best.into_values().collect();
    best_first(&mut ways);
    Ok(ways)
}

fn best_first(ways: &mut [Way]) {
    ways.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.end.cmp(&b.end)));
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
