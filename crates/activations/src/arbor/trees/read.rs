//! What is read of trees.

use plexus_store::rusqlite::{Connection, Params};

use super::{MAX_CONTENT, Trees};
use crate::arbor::error::ArborError;
use crate::arbor::handle::Handle;
use crate::arbor::model::{Node, Skeleton, State, Tree, TreeSummary};
use crate::arbor::tables::{self, PATH};

impl Trees {
    /// One tree, without its nodes.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn summary(&self, tree_id: impl Into<String>) -> Result<TreeSummary, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| tables::tree(db, &id, now)).await
    }

    /// One tree, with all its nodes.
    ///
    /// # Errors
    /// There is none of this id, or it holds too much for one answer.
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

    /// One tree, with the places of its nodes.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn skeleton(&self, tree_id: impl Into<String>) -> Result<Skeleton, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        self.read(move |db| {
            let tree = tables::tree(db, &id, now)?;
            let nodes = tables::places(db, &id)?;
            Ok(Skeleton { tree, nodes })
        })
        .await
    }

    /// The ids of the trees in this state, the newest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, state: State) -> Result<Vec<String>, ArborError> {
        let now = self.now();
        self.read(move |db| Ok(tables::trees_in(db, state, now, None)?))
            .await
    }

    /// One node.
    ///
    /// # Errors
    /// The tree has none of this id.
    pub async fn node(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Node, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| node_of(db, &tree, &node)).await
    }

    /// The node that all others descend from.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn root(&self, tree_id: impl Into<String>) -> Result<Node, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.root))
            .await
    }

    /// The node where the conversation goes on.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn head(&self, tree_id: impl Into<String>) -> Result<Node, ArborError> {
        let (tree, now) = (tree_id.into(), self.now());
        self.read(move |db| node_of(db, &tree, &tables::tree(db, &tree, now)?.head))
            .await
    }

    /// The ids on the way from the root to a node, both included.
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

    /// The nodes on the way from the root to a node, both included.
    ///
    /// # Errors
    /// The tree has no such node, or they hold too much for one answer.
    pub async fn path_nodes(
        &self,
        tree_id: impl Into<String>,
        node_id: impl Into<String>,
    ) -> Result<Vec<Node>, ArborError> {
        let (tree, node) = (tree_id.into(), node_id.into());
        self.read(move |db| path_nodes(db, &tree, &node)).await
    }

    /// The ids of the nodes to which nothing was added, the oldest first.
    ///
    /// # Errors
    /// There is no such tree.
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

    /// The handles on the way from the root to a node.
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

    /// The text behind a handle, if whoever has it says so.
    pub async fn resolve(&self, handle: &str) -> Option<String> {
        let handle: Handle = handle.parse().ok()?;
        let resolver = self.resolvers.get(handle.plugin_id.as_str())?;
        resolver(handle).await
    }
}

pub(super) fn node_of(db: &Connection, tree: &str, node: &str) -> Result<Node, ArborError> {
    tables::must_exist(db, tree)?;
    let clauses = "WHERE node.tree_id = ?1 AND node.id = ?2";
    let mut found = tables::nodes(db, "", clauses, [tree, node])?;
    found.pop().ok_or_else(|| ArborError::NodeNotFound {
        tree_id: tree.to_owned(),
        node_id: node.to_owned(),
    })
}

pub(crate) fn path_nodes(db: &Connection, tree: &str, node: &str) -> Result<Vec<Node>, ArborError> {
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

/// Refuses to read more text than one answer can carry.
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
    if size > MAX_CONTENT as u64 {
        let tree_id = tree.to_owned();
        return Err(ArborError::TooMuchText { tree_id, size });
    }
    Ok(())
}
