//! How the graph is doing.

use plexus_store::rusqlite;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::GraphError;
use super::graph::Graph;
use super::sync::revision;

/// How many namespaces are listed.
const NAMESPACES: u32 = 100;

/// How much is in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Status {
    /// How many nodes there are.
    pub nodes: i64,
    /// How many nodes are forgotten and can be restored.
    pub forgotten: i64,
    /// How many links there are between nodes that are not forgotten.
    pub links: i64,
    /// The namespaces with the most nodes, and how many these are; at most 100.
    pub namespaces: Vec<NamespaceStatus>,
    /// What makes the vectors.
    pub embedder: String,
    /// How many nodes can be found only by their words, until they have a vector.
    pub without_vector: i64,
    /// How many changes there have been.
    pub revision: i64,
}

/// How much is in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct NamespaceStatus {
    /// Its name.
    pub name: String,
    /// How many nodes are in it.
    pub nodes: i64,
}

impl Graph {
    /// How much is in the graph.
    pub async fn status(&self) -> Result<Status, GraphError> {
        let embedder = self.embedder().name().to_owned();
        let now = self.now();
        self.read(move |db| {
            let count = |statement, parameters: &[&dyn rusqlite::ToSql]| {
                db.prepare_cached(statement)?
                    .query_row(parameters, |row| row.get::<_, i64>(0))
            };
            let mut statement = db.prepare_cached(
                "SELECT namespace, count(*) FROM context_nodes WHERE state = 'live'
                 GROUP BY namespace ORDER BY count(*) DESC, namespace LIMIT ?1",
            )?;
            let namespaces = statement.query_map([NAMESPACES], |row| {
                Ok(NamespaceStatus {
                    name: row.get(0)?,
                    nodes: row.get(1)?,
                })
            })?;
            Ok(Status {
                nodes: count(
                    "SELECT count(*) FROM context_nodes WHERE state = 'live'",
                    &[],
                )?,
                forgotten: count(
                    "SELECT count(*) FROM context_nodes
                     WHERE state = 'forgotten' AND purge_at > ?1",
                    &[&now],
                )?,
                links: count(
                    "SELECT count(*) FROM context_links
                     JOIN context_nodes AS a ON a.id = source AND a.state = 'live'
                     JOIN context_nodes AS b ON b.id = target AND b.state = 'live'",
                    &[],
                )?,
                without_vector: count(
                    "SELECT count(*) FROM context_nodes
                     WHERE state = 'live' AND embedder IS NOT ?1",
                    &[&embedder],
                )?,
                namespaces: namespaces.collect::<rusqlite::Result<_>>()?,
                revision: revision(db)?,
                embedder,
            })
        })
        .await
    }
}
