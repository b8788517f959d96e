//! Stores and reads nodes.

use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Transaction, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::{Action, Record};
use super::error::GraphError;
use super::forget;
use super::graph::Graph;
use super::link::{self, Link};
use super::node::{DEFAULT_NAMESPACE, NewNode, Node, Strings, searchable};
use super::revisions::next_revision;
use super::vector::Vector;

/// The result of storing a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Stored {
    /// The id of the node.
    pub id: String,
    /// The URI of the node's resource, which can be read and subscribed to.
    pub uri: String,
    /// Whether the node is new: no node had this key or, without a key, this content.
    pub created: bool,
}

/// Identifies a node by its id or by its key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeQuery {
    /// The id of the node.
    #[serde(default)]
    pub id: Option<String>,
    /// The key under which the node was stored.
    #[serde(default)]
    pub key: Option<String>,
    /// The namespace of the key; "default" if none is given.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// A node with its links.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct NodeWithLinks {
    /// The node.
    pub node: Node,
    /// Its links, the strongest first; at most 100.
    pub links: Vec<Link>,
}

impl Graph {
    /// Stores a node. `caller` is recorded in the audit trail.
    pub async fn store(&self, node: NewNode, caller: &str) -> Result<Stored, GraphError> {
        node.check()?;
        let text = searchable(node.key.as_deref(), &node.tags, &node.content);
        let vector = self.vectorize(text).await;
        let id = node.id();
        let now = self.now();
        let vectorizer = self.vectorizer().name().to_owned();
        let caller = caller.to_owned();
        self.write(move |transaction| {
            let created = !is_live(transaction, &id)?;
            let vector = vector.map(|vector| (vector, vectorizer));
            put(transaction, &id, &node, vector, now)?;
            let record =
                Record::new(now, Action::Store, &id, &caller).reason(node.rationale.as_deref());
            record.insert(transaction)?;
            Ok(Stored {
                uri: super::uri(&id),
                id,
                created,
            })
        })
        .await
    }

    /// Returns the node of this id, with its links.
    pub async fn get(&self, id: &str) -> Result<NodeWithLinks, GraphError> {
        let id = id.to_owned();
        self.read(move |db| with_links(db, live(db, &id)?)).await
    }

    /// Returns the node that was stored in this namespace under this key (S000-55).
    pub async fn retrieve(&self, namespace: &str, key: &str) -> Result<NodeWithLinks, GraphError> {
        let id = NewNode::new("").namespace(namespace).key(key).id();
        match self.get(&id).await {
            Err(GraphError::NotFound(_)) => Err(GraphError::NotFound(format!("{namespace}/{key}"))),
            found => found,
        }
    }

    /// Returns the nodes that were stored last, in this namespace or in all, the newest first. Long
    /// content is cut.
    pub async fn newest(
        &self,
        namespace: Option<String>,
        limit: u32,
    ) -> Result<Vec<Node>, GraphError> {
        self.read(move |db| {
            let columns = Node::EXCERPT_COLUMNS;
            let mut statement = db.prepare_cached(&format!(
                "SELECT {columns} FROM context_nodes
                 WHERE state = 'live' AND (?1 IS NULL OR namespace = ?1)
                 ORDER BY updated_at DESC, id LIMIT ?2"
            ))?;
            let nodes = statement.query_map((namespace, limit), Node::read)?;
            Ok(nodes.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Returns the node that `query` identifies by id or by key.
    pub async fn find(&self, query: NodeQuery) -> Result<NodeWithLinks, GraphError> {
        let namespace = query.namespace.as_deref();
        match (&query.id, &query.key) {
            (Some(id), None) if namespace.is_none() => self.get(id).await,
            (None, Some(key)) => {
                self.retrieve(namespace.unwrap_or(DEFAULT_NAMESPACE), key)
                    .await
            }
            _ => Err(GraphError::Invalid {
                member: "a node",
                rule: "named by its id, or by its key and namespace",
            }),
        }
    }
}

/// Writes a node, and replaces an existing one; its links stay.
pub(super) fn put(
    transaction: &Transaction<'_>,
    id: &str,
    node: &NewNode,
    vector: Option<(Vector, String)>,
    now: i64,
) -> Result<(), GraphError> {
    let (vector, vectorizer) = vector.unzip();
    let revision = next_revision(transaction)?;
    transaction
        .prepare_cached(
            "INSERT INTO context_nodes
                 (id, namespace, key, content, modality, importance, tags, rationale, vector,
                  embedder, created_at, updated_at, state, revision)
             VALUES (:id, :namespace, :key, :content, :modality, :importance, :tags, :rationale,
                 :vector, :embedder, :now, :now, 'live', :revision)
             ON CONFLICT (id) DO UPDATE SET
                 key = excluded.key, content = excluded.content, modality = excluded.modality,
                 importance = excluded.importance, tags = excluded.tags,
                 rationale = excluded.rationale, vector = excluded.vector,
                 embedder = excluded.embedder, updated_at = excluded.updated_at,
                 created_at = CASE state WHEN 'live' THEN created_at ELSE excluded.created_at END,
                 state = 'live', purge_at = NULL, revision = excluded.revision",
        )?
        .execute(named_params! {
            ":id": id,
            ":namespace": node.namespace,
            ":key": node.key,
            ":content": node.content,
            ":modality": node.modality,
            ":importance": node.importance,
            ":tags": Strings(node.tags.clone()),
            ":rationale": node.rationale,
            ":vector": vector.map(|vector| vector.to_bytes()),
            ":embedder": vectorizer,
            ":now": now,
            ":revision": revision,
        })?;
    forget::purge(transaction, now)?;
    Ok(())
}

/// Reads a node that is not forgotten.
pub(super) fn live(db: &Connection, id: &str) -> Result<Node, GraphError> {
    let columns = Node::COLUMNS;
    let node = db
        .prepare_cached(&format!(
            "SELECT {columns} FROM context_nodes WHERE id = ?1 AND state = 'live'"
        ))?
        .query_row([id], Node::read)
        .optional()?;
    node.ok_or_else(|| GraphError::NotFound(id.to_owned()))
}

/// Whether a node exists and is not forgotten.
pub(super) fn is_live(db: &Connection, id: &str) -> Result<bool, GraphError> {
    Ok(db
        .prepare_cached("SELECT 1 FROM context_nodes WHERE id = ?1 AND state = 'live'")?
        .exists([id])?)
}

/// Fails unless the node exists and is not forgotten.
pub(super) fn require(db: &Connection, id: &str) -> Result<(), GraphError> {
    if is_live(db, id)? {
        Ok(())
    } else {
        Err(GraphError::NotFound(id.to_owned()))
    }
}

fn with_links(db: &Connection, node: Node) -> Result<NodeWithLinks, GraphError> {
    let links = link::of(db, &node.id)?;
    Ok(NodeWithLinks { node, links })
}
