//! Statistics of the graph.

use plexus_mcp_store::rusqlite;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::GraphError;
use super::graph::Graph;
use super::revisions::revision;

/// The maximum number of namespaces that are listed.
const MAX_NAMESPACES: u32 = 100;

/// Statistics of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct GraphStatus {
    /// Number of nodes.
    pub nodes: i64,
    /// Number of forgotten nodes that can be restored.
    pub forgotten: i64,
    /// Number of links between nodes that are not forgotten.
    pub links: i64,
    /// The namespaces with the most nodes, at most 100, and how many nodes each has.
    pub namespaces: Vec<NamespaceStatus>,
    /// The name and version of the vectorizer, which makes the vectors for similarity search.
    pub vectorizer: String,
    /// Number of nodes without a vector, which are found only by their words.
    pub without_vector: i64,
    /// Number of changes so far.
    pub revision: i64,
}

/// Statistics of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct NamespaceStatus {
    /// The name of the namespace.
    pub name: String,
    /// Number of nodes in the namespace.
    pub nodes: i64,
}

impl Graph {
    /// Returns statistics of the graph.
    pub async fn status(&self) -> Result<GraphStatus, GraphError> {
        let vectorizer = self.vectorizer().name().to_owned();
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
            let namespaces = statement.query_map([MAX_NAMESPACES], |row| {
                Ok(NamespaceStatus {
                    name: row.get(0)?,
                    nodes: row.get(1)?,
                })
            })?;
            Ok(GraphStatus {
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
                    &[&vectorizer],
                )?,
                namespaces: namespaces.collect::<rusqlite::Result<_>>()?,
                revision: revision(db)?,
                vectorizer,
            })
        })
        .await
    }
}
