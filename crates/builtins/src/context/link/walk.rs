//! Traversal of links.

use std::collections::HashMap;

use plexus_mcp_store::rusqlite::{self, Connection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, LinkFilter, Neighbour, adjacent};
use crate::context::error::GraphError;
use crate::context::graph::Graph;
use crate::context::index::{Index, Ranking, Slot};
use crate::context::nodes::require;

/// The factor by which the score decreases with each link.
const ATTENUATION: f64 = 0.9;

/// Beam width of a traversal: the maximum number of nodes that are expanded after each step, the
/// best first. It is enough for any graph made by hand, and bounds the work in generated graphs.
const TRAVERSE_BEAM_WIDTH: usize = 200;

/// Beam width of the link ranking in a search, which must be faster.
const SEARCH_BEAM_WIDTH: usize = 30;

/// The maximum number of links that are followed from one node, the strongest first.
const MAX_LINKS_PER_NODE: u32 = 200;

/// A request to follow links from a node.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Traverse {
    /// The id of the node to start from.
    pub id: String,
    /// The maximum number of links on a path.
    #[serde(default = "default_hops")]
    #[schemars(range(min = 1, max = 5))]
    pub max_hops: u32,
    /// Only links of at least this weight.
    #[serde(default = "default_min_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_weight: f64,
    /// The maximum number of nodes, the nearest first.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = 100))]
    pub max_results: u32,
    /// The direction in which links are followed.
    #[serde(default = "outward")]
    pub direction: Direction,
    /// Only links of this relation.
    #[serde(default)]
    pub relation: Option<String>,
}

/// The result of following links from a node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Traversal {
    /// The nodes, the nearest first.
    pub nodes: Vec<Reached>,
    /// The number of nodes.
    pub count: usize,
}

/// A node that a traversal reached.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Reached {
    /// The id of the node.
    pub id: String,
    /// The proximity, from 0 to 1: the product of the weights on the best path, and of 0.9 for each
    /// link.
    pub score: f64,
    /// The number of links on the best path.
    pub hops: usize,
    /// The ids of all nodes on the best path, both ends included.
    pub path: Vec<String>,
    /// The beginning of the node's content.
    pub excerpt: String,
}

impl Graph {
    /// Follows links from a node, with a beam search.
    pub async fn traverse(&self, request: Traverse) -> Result<Traversal, GraphError> {
        self.read(move |db| {
            require(db, &request.id)?;
            let filter = LinkFilter {
                direction: request.direction,
                relation: request.relation,
                min_weight: request.min_weight,
            };
            let mut excerpts = HashMap::new();
            let start = Path::from(request.id.clone(), 1.0);
            let mut ways = walk(
                vec![start],
                request.max_hops.min(5),
                TRAVERSE_BEAM_WIDTH,
                |id| {
                    let neighbours = adjacent(db, id, &filter, MAX_LINKS_PER_NODE)?;
                    let step = |neighbour: Neighbour| {
                        excerpts.insert(neighbour.id.clone(), neighbour.excerpt);
                        (neighbour.id, neighbour.weight)
                    };
                    Ok(neighbours.into_iter().map(step).collect())
                },
            )?;
            ways.truncate(usize::try_from(request.max_results).unwrap_or(usize::MAX));
            let reached = |way: Path| Reached {
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

/// Ranks the eligible nodes that are up to two links away from the best hits of a search.
pub(in crate::context) fn proximity(
    db: &Connection,
    index: &Index<'_>,
    hits: &[(Slot, f32)],
    eligible: &[bool],
    limit: usize,
) -> rusqlite::Result<Ranking> {
    let mut starts = Vec::new();
    for &(slot, score) in hits {
        if let Some(id) = index.id(slot)? {
            starts.push(Path::from(id, f64::from(score)));
        }
    }
    let mut links = db.prepare_cached(
        "SELECT other, weight, segment, position FROM (
             SELECT target AS other, weight FROM context_links WHERE source = ?1
             UNION ALL SELECT source, weight FROM context_links WHERE target = ?1
         ) JOIN context_nodes ON context_nodes.id = other AND state = 'live'
         ORDER BY weight DESC, other LIMIT ?2",
    )?;
    let mut slots = HashMap::new();
    let ways = walk(starts, 2, SEARCH_BEAM_WIDTH, |id| {
        let mut steps = Vec::new();
        let mut rows = links.query((id, MAX_LINKS_PER_NODE))?;
        while let Some(row) = rows.next()? {
            let other: String = row.get("other")?;
            let segment: Option<i64> = row.get("segment")?;
            let place = segment.zip(row.get("position")?);
            if let Some(slot) = index.slot(&other, place) {
                slots.insert(other.clone(), slot);
                steps.push((other, row.get("weight")?));
            }
        }
        Ok(steps)
    })?;
    let ranked = ways.into_iter().filter_map(|way| {
        let slot = *slots.get(&way.end)?;
        let eligible = eligible.get(slot).is_some_and(|&eligible| eligible);
        (eligible && way.score > 0.0).then_some((slot, single(way.score)))
    });
    Ok(index.best(ranked, limit))
}

/// A path along links, with the score at its end.
#[derive(Debug, Clone)]
struct Path {
    end: String,
    score: f64,
    /// The ids of all nodes on the path, both ends included.
    nodes: Vec<String>,
}

impl Path {
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

/// The best paths of one to `hops` links from `starts`, the best first: a beam search. After each
/// link, only the `breadth` best paths are extended. A start is included only if it is reached from
/// another start.
fn walk(
    starts: Vec<Path>,
    hops: u32,
    breadth: usize,
    mut steps: impl FnMut(&str) -> rusqlite::Result<Vec<(String, f64)>>,
) -> rusqlite::Result<Vec<Path>> {
    let mut frontier = starts;
    let mut best: HashMap<String, Path> = HashMap::new();
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
    let mut ways: Vec<Path> = best.into_values().collect();
    best_first(&mut ways);
    Ok(ways)
}

fn best_first(ways: &mut [Path]) {
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
