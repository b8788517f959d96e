//! Links between nodes, and walks along them.

mod walk;

use plexus_store::rusqlite::{self, Connection, OptionalExtension, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use walk::proximity;
pub use walk::{Reached, Traversal, Traverse};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::graph::Graph;
use super::node::excerpt;
use super::remember::require;
use super::sync::touch;

/// How much of a neighbour's content is shown.
pub(super) const EXCERPT: usize = 200;

/// That one node has to do with another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Link {
    /// The node that the link goes out from.
    pub source: String,
    /// The node that it goes to.
    pub target: String,
    /// What the source has to do with the target, such as imports, calls, cites or contains.
    #[serde(default = "default_relation")]
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{0,63}$"))]
    pub relation: String,
    /// How much, from 0 to 1.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

impl Link {
    /// From one node to another.
    pub fn new(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            relation: default_relation(),
            weight: default_weight(),
        }
    }

    fn check(&self) -> Result<(), GraphError> {
        let invalid = |member, rule| Err(GraphError::Invalid { member, rule });
        if self.source == self.target {
            return invalid("a link", "between two different nodes");
        }
        let is_letter = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
        let begins_well = self.relation.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_well || self.relation.len() > 64 || !self.relation.chars().all(is_letter) {
            return invalid(
                "relation",
                "1 to 64 of a-z, 0-9 and _, beginning with a letter",
            );
        }
        if !(0.0..=1.0).contains(&self.weight) {
            return invalid("weight", "from 0 to 1");
        }
        Ok(())
    }
}

/// What became of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Linked {
    /// The link.
    pub link: Link,
    /// Whether it was not there before; if it was, it has its weight now.
    pub created: bool,
}

/// Which links to take away.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unlink {
    /// The node that they go out from.
    pub source: String,
    /// The node that they go to.
    pub target: String,
    /// Only the link of this relation.
    #[serde(default)]
    pub relation: Option<String>,
}

/// How many links were taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unlinked {
    /// How many.
    pub removed: usize,
}

/// Which way to follow links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(clippy::exhaustive_enums, reason = "a link has two ends")]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way.
    #[default]
    Both,
}

/// Whose neighbours are wanted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NeighboursQuery {
    /// Whose.
    pub id: String,
    /// Which way to follow links.
    #[serde(default)]
    pub direction: Direction,
    /// Only along links of this relation.
    #[serde(default)]
    pub relation: Option<String>,
    /// How many to give at most, those with the strongest links first.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

/// Nodes that are one link away.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Neighbours {
    /// The nodes, those with the strongest links first.
    pub neighbours: Vec<Neighbour>,
    /// How many these are.
    pub count: usize,
}

/// A node that is one link away.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Neighbour {
    /// The node.
    pub id: String,
    /// The relation of the link.
    pub relation: String,
    /// Whether the link goes out to the node, or comes in from it.
    pub direction: Direction,
    /// The weight of the link.
    pub weight: f64,
    /// How the node's content begins.
    pub excerpt: String,
}

impl Graph {
    /// Links two nodes, or changes the weight of their link.
    pub async fn link(&self, link: Link, caller: &str) -> Result<Linked, GraphError> {
        link.check()?;
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            require(transaction, &link.source)?;
            require(transaction, &link.target)?;
            let before: Option<f64> = transaction
                .prepare_cached(
                    "SELECT weight FROM context_links
                     WHERE source = ?1 AND relation = ?2 AND target = ?3",
                )?
                .query_row((&link.source, &link.relation, &link.target), |row| {
                    row.get(0)
                })
                .optional()?;
            transaction
                .prepare_cached(
                    "INSERT INTO context_links (source, relation, target, weight, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET weight = excluded.weight",
                )?
                .execute((&link.source, &link.relation, &link.target, link.weight, now))?;
            touch(transaction, &link.source)?;
            touch(transaction, &link.target)?;
            let record = Record::new(now, Action::Link, &link.source, &caller)
                .detail(format!("{} {}", link.relation, link.target));
            record.keep(transaction)?;
            Ok(Linked {
                created: before.is_none(),
                link,
            })
        })
        .await
    }

    /// Takes links between two nodes away.
    pub async fn unlink(&self, request: Unlink, caller: &str) -> Result<Unlinked, GraphError> {
        let now = self.now();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let Unlink {
                source,
                target,
                relation,
            } = request;
            require(transaction, &source)?;
            require(transaction, &target)?;
            let removed = transaction
                .prepare_cached(
                    "DELETE FROM context_links
                     WHERE source = ?1 AND target = ?2 AND (?3 IS NULL OR relation = ?3)",
                )?
                .execute((&source, &target, &relation))?;
            if removed > 0 {
                touch(transaction, &source)?;
                touch(transaction, &target)?;
                let relation = relation.as_deref().unwrap_or("all links to");
                let record = Record::new(now, Action::Unlink, &source, &caller)
                    .detail(format!("{relation} {target}"));
                record.keep(transaction)?;
            }
            Ok(Unlinked { removed })
        })
        .await
    }

    /// The nodes that are one link away from another.
    pub async fn neighbours(&self, query: NeighboursQuery) -> Result<Neighbours, GraphError> {
        self.read(move |db| {
            require(db, &query.id)?;
            let along = Along {
                direction: query.direction,
                relation: query.relation,
                min_weight: 0.0,
            };
            let neighbours = adjacent(db, &query.id, &along, query.limit)?;
            let count = neighbours.len();
            Ok(Neighbours { neighbours, count })
        })
        .await
    }
}

/// Which links to follow.
#[derive(Debug, Clone, Default)]
pub(super) struct Along {
    pub(super) direction: Direction,
    pub(super) relation: Option<String>,
    pub(super) min_weight: f64,
}

/// The live nodes one link away, the strongest links first. Ties are broken by id.
pub(super) fn adjacent(
    db: &Connection,
    id: &str,
    along: &Along,
    limit: u32,
) -> rusqlite::Result<Vec<Neighbour>> {
    let mut statement = db.prepare_cached(
        "SELECT other, relation, outward, weight, substr(content, 1, :excerpt) AS content FROM (
             SELECT target AS other, relation, TRUE AS outward, weight
             FROM context_links WHERE source = :id AND :direction <> 'in'
             UNION ALL
             SELECT source, relation, FALSE, weight
             FROM context_links WHERE target = :id AND :direction <> 'out'
         ) JOIN context_nodes ON context_nodes.id = other AND state = 'live'
         WHERE weight >= :min_weight AND (:relation IS NULL OR relation = :relation)
         ORDER BY weight DESC, other, relation, outward DESC LIMIT :limit",
    )?;
    let direction = match along.direction {
        Direction::Out => "out",
        Direction::In => "in",
        Direction::Both => "both",
    };
    let neighbours = statement.query_map(
        named_params! {
            ":id": id,
            ":direction": direction,
            ":min_weight": along.min_weight,
            ":relation": along.relation,
            ":limit": limit,
            // One more than is shown, so that it is seen that there is more.
            ":excerpt": i64::try_from(EXCERPT + 1).unwrap_or(i64::MAX),
        },
        |row| {
            let outward = row.get("outward")?;
            Ok(Neighbour {
                id: row.get("other")?,
                relation: row.get("relation")?,
                direction: if outward {
                    Direction::Out
                } else {
                    Direction::In
                },
                weight: row.get("weight")?,
                excerpt: excerpt(row.get_ref("content")?.as_str()?, EXCERPT),
            })
        },
    )?;
    neighbours.collect()
}

/// All links of a node to live ones, as far as they are worth showing.
pub(super) fn of(db: &Connection, id: &str) -> rusqlite::Result<Vec<Link>> {
    let neighbours = adjacent(db, id, &Along::default(), 100)?;
    let links = neighbours.into_iter().map(|neighbour| {
        let (source, target) = match neighbour.direction {
            Direction::In => (neighbour.id, id.to_owned()),
            Direction::Out | Direction::Both => (id.to_owned(), neighbour.id),
        };
        Link {
            source,
            target,
            relation: neighbour.relation,
            weight: neighbour.weight,
        }
    });
    Ok(links.collect())
}

fn default_relation() -> String {
    "relates_to".to_owned()
}

fn default_weight() -> f64 {
    1.0
}

fn default_limit() -> u32 {
    50
}
