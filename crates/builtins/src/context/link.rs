//! Links between nodes.

mod walk;

use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use walk::proximity;
pub use walk::{Reached, Traversal, Traverse};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::graph::Graph;
use super::node::excerpt;
use super::nodes::require;
use super::revisions::touch;

/// The maximum size of the excerpt of a neighbour's content, in bytes.
pub(super) const EXCERPT_BYTES: usize = 200;

/// A directed link from one node to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Link {
    /// The id of the node that the link starts from.
    pub source: String,
    /// The id of the node that the link points to.
    pub target: String,
    /// The relation of the source to the target, such as imports, calls, cites or contains.
    #[serde(default = "default_relation")]
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{0,63}$"))]
    pub relation: String,
    /// The strength of the link, from 0 to 1.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

impl Link {
    /// A link from one node to another, with the default relation and weight.
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

/// The result of linking two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Linked {
    /// The link.
    pub link: Link,
    /// Whether the link is new; if not, its weight was changed.
    pub created: bool,
}

/// A request to remove links between two nodes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unlink {
    /// The id of the node that the links start from.
    pub source: String,
    /// The id of the node that the links point to.
    pub target: String,
    /// Only the link of this relation.
    #[serde(default)]
    pub relation: Option<String>,
}

/// The result of removing links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unlinked {
    /// The number of links that were removed.
    pub removed: usize,
}

/// The direction in which links are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(clippy::exhaustive_enums, reason = "a link has two ends")]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// In both directions.
    #[default]
    Both,
}

/// A request for the neighbours of a node.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NeighboursQuery {
    /// The id of the node.
    pub id: String,
    /// The direction in which links are followed.
    #[serde(default)]
    pub direction: Direction,
    /// Only links of this relation.
    #[serde(default)]
    pub relation: Option<String>,
    /// The maximum number of neighbours, those with the strongest links first.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

/// The neighbours of a node: the nodes that are one link away.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Neighbours {
    /// The nodes, those with the strongest links first.
    pub neighbours: Vec<Neighbour>,
    /// The number of neighbours.
    pub count: usize,
}

/// A node that is one link away.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Neighbour {
    /// The id of the node.
    pub id: String,
    /// The relation of the link.
    pub relation: String,
    /// Whether the link goes out to the node, or comes in from it.
    pub direction: Direction,
    /// The weight of the link.
    pub weight: f64,
    /// The beginning of the node's content.
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
            record.insert(transaction)?;
            Ok(Linked {
                created: before.is_none(),
                link,
            })
        })
        .await
    }

    /// Removes links between two nodes.
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
                record.insert(transaction)?;
            }
            Ok(Unlinked { removed })
        })
        .await
    }

    /// Returns the nodes that are one link away from a node.
    pub async fn neighbours(&self, query: NeighboursQuery) -> Result<Neighbours, GraphError> {
        self.read(move |db| {
            require(db, &query.id)?;
            let filter = LinkFilter {
                direction: query.direction,
                relation: query.relation,
                min_weight: 0.0,
            };
            let neighbours = adjacent(db, &query.id, &filter, query.limit)?;
            let count = neighbours.len();
            Ok(Neighbours { neighbours, count })
        })
        .await
    }
}

/// Selects the links to follow.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkFilter {
    pub(super) direction: Direction,
    pub(super) relation: Option<String>,
    pub(super) min_weight: f64,
}

/// The live nodes one link away, the strongest links first. Ties are broken by id.
pub(super) fn adjacent(
    db: &Connection,
    id: &str,
    filter: &LinkFilter,
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
    let direction = match filter.direction {
        Direction::Out => "out",
        Direction::In => "in",
        Direction::Both => "both",
    };
    let neighbours = statement.query_map(
        named_params! {
            ":id": id,
            ":direction": direction,
            ":min_weight": filter.min_weight,
            ":relation": filter.relation,
            ":limit": limit,
            // One byte more than is shown, to detect that the content was cut.
            ":excerpt": i64::try_from(EXCERPT_BYTES + 1).unwrap_or(i64::MAX),
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
                excerpt: excerpt(row.get_ref("content")?.as_str()?, EXCERPT_BYTES),
            })
        },
    )?;
    neighbours.collect()
}

/// The links of a node to live nodes, the strongest first, up to the maximum that is shown.
pub(super) fn of(db: &Connection, id: &str) -> rusqlite::Result<Vec<Link>> {
    let neighbours = adjacent(db, id, &LinkFilter::default(), 100)?;
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
