//! Read operations on trees.

use plexus_mcp_store::rusqlite::{Connection, Params};

use super::{MAX_CONTENT_BYTES, Trees};
use crate::arbor::error::ArborError;
use crate::arbor::handle::Handle;
use crate::arbor::model::{Skeleton, State, Tree, TreeNode, TreeSummary};
use crate::arbor::tables::{self, PATH};

impl Trees {
    /// Returns a tree without its nodes.
    ///
    /// # Errors
    /// No tree has this id.
    pub async fn summary(&self, tree_id: impl Into<String>) -> Result<TreeSummary, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| tables::tree(db, &id, now)).await
    }

    /// Returns a tree with all its nodes.
    ///
    /// # Errors
    /// No tree has this id, or its text is too large for one response.
    pub async fn get(&self, tree_id: impl Into<String>) -> Result<Tree, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| {
            let tree = tables::tree(db, &id, now)?;
            bounded(db, &id, "", "WHERE node.tree_id = ?1", [&id])?;
            let clauses = "WHERE node.tree_id = ?1 ORDER BY node.seq";
            let nodes = tables::nodes(db, "", clauses, [&id])?;
            Ok(Tree { tree, nodes })
        })
        .await
    }

    /// Returns a tree with the structure of its nodes.
    ///
    /// # Errors
    /// No tree has this id.
    pub async fn skeleton(&self, tree_id: impl Into<String>) -> Result<Skeleton, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| {
            let tree = tables::tree(db, &id, now)?;
            let nodes = tables::structure(db, &id)?;
            Ok(Skeleton { tree, nodes })
        })
        .await
    }

    /// Returns the ids of the trees in this state, the newest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, state: State) -> Result<Vec<String>, ArborError> {
        let now = self.now();
        self.read(move |db| Ok(tables::trees_in(db, state, now, None)?))
            .await
    }

    /// Returns a node.
    ///
    /// # Errors
    /// The tree has no node of this id.
    pub async fn node(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<TreeNode, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| node_of(db, &tree, &node)).await
    }

    /// Returns the root of a tree.
    ///
    /// # Errors
    /// No tree has this id.
    pub async fn root(&self, tree_id: impl Into<String>) -> Result<TreeNode, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.root))
            .await
    }

    /// Returns the head of a tree, where the conversation continues.
    ///
    /// # Errors
    /// No tree has this id.
    pub async fn head(&self, tree_id: impl Into<String>) -> Result<TreeNode, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.head))
            .await
    }

    /// Returns the ids of the nodes from the root to a node, both included.
    ///
    /// # Errors
    /// The tree has no such node.
    pub async fn path(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<String>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| {
            present(db, &tree, &node)?;
            let statement = format!("{PATH} SELECT id FROM path ORDER BY up DESC");
            Ok(tables::texts(db, &statement, [&tree, &node])?)
        })
        .await
    }

    /// Returns the nodes from the root to a node, both included.
    ///
    /// # Errors
    /// The tree has no such node, or the text of the nodes is too large for one response.
    pub async fn path_nodes(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<TreeNode>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| path_nodes(db, &tree, &node)).await
    }

    /// Returns the ids of the nodes without children, the oldest first.
    ///
    /// # Errors
    /// No tree has this id.
    pub async fn leaves(&self, tree_id: impl Into<String>) -> Result<Vec<String>, ArborError> {
        let tree = tree_id.into();
        self.read(move |db| {
            tables::must_exist(db, &tree)?;
            let statement = "
                SELECT id FROM arbor_nodes AS node
                WHERE tree_id = ?1
                    AND NOT EXISTS (SELECT 1 FROM arbor_nodes WHERE parent_id = node.id)
                ORDER BY seq";
            Ok(tables::texts(db, statement, [&tree])?)
        })
        .await
    }

    /// Returns the handles of the nodes from the root to a node.
    ///
    /// # Errors
    /// The tree has no such node.
    pub async fn handles(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<String>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| {
            present(db, &tree, &node)?;
            let statement = format!(
                "{PATH} SELECT node.handle FROM path JOIN arbor_nodes AS node USING (seq)
                 WHERE node.handle IS NOT NULL ORDER BY path.up DESC"
            );
            Ok(tables::texts(db, &statement, [&tree, &node])?)
        })
        .await
    }

    /// Returns the text that a handle points to; `None` if it cannot be resolved.
    pub async fn resolve(&self, handle: &str) -> Option<String> {
        let handle: Handle = handle.parse().ok()?;
        let resolver = self.resolvers.get(handle.plugin_id.as_str())?;
        resolver(handle).await
    }
}

pub(super) fn node_of(db: &Connection, tree: &str, node: &str) -> Result<TreeNode, ArborError> {
    tables::must_exist(db, tree)?;
    let clauses = "WHERE node.tree_id = ?1 AND node.id = ?2";
    let mut found = tables::nodes(db, "", clauses, [tree, node])?;
    found.pop().ok_or_else(|| ArborError::NodeNotFound {
        tree_id: tree.to_owned(),
        node_id: node.to_owned(),
    })
}

/// The nodes from the root of a tree to `node`, in this order.
pub fn path_nodes(db: &Connection, tree: &str, node: &str) -> Result<Vec<TreeNode>, ArborError> {
    present(db, tree, node)?;
    let joined = "JOIN path USING (seq)";
    bounded(db, tree, PATH, joined, [tree, node])?;
    let clauses = format!("{joined} ORDER BY path.up DESC");
    Ok(tables::nodes(db, PATH, &clauses, [tree, node])?)
}

fn present(db: &Connection, tree: &str, node: &str) -> Result<(), ArborError> {
    tables::must_exist(db, tree)?;
    tables::must_have(db, tree, node)
}

/// Fails if the selected nodes hold more text than one response may carry.
fn bounded(
    db: &Connection,
    tree: &str,
    with: &str,
    clauses: &str,
    params: impl Params,
) -> Result<(), ArborError> {
    let statement = format!(
        "{with} SELECT coalesce(sum(octet_length(node.content)), 0)
                     + coalesce(sum(octet_length(node.metadata)), 0)
         FROM arbor_nodes AS node {clauses}"
    );
    let size: i64 = db
        .prepare_cached(&statement)?
        .query_row(params, |row| row.get(0))?;
    let size = size.unsigned_abs();
    if size > MAX_CONTENT_BYTES as u64 {
        let tree_id = tree.to_owned();
        return Err(ArborError::TooMuchText { tree_id, size });
    }
    Ok(())
}
