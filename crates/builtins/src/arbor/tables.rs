//! The database tables of the trees, and queries on them.

use jiff::Timestamp;
use plexus_mcp_core::{Limits, Raw};
use plexus_mcp_store::Migrations;
use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Params, Row};
use serde::Deserialize;

use super::error::ArborError;
use super::model::{Owner, SkeletonNode, State, TreeNode, TreeSummary};
use super::trees::ARCHIVE_GRACE_PERIOD;
use crate::notifying_store::timestamp_text;

/// The migrations that create the tables of the trees.
///
/// `seq` is the order in which nodes were added: a parent always has a lower `seq` than its
/// children. The state of a tree is computed from the time of its release, so that no timer is
/// needed to change it.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "arbor",
    steps: &["
        CREATE TABLE arbor_trees (
            id TEXT NOT NULL PRIMARY KEY,
            head_id TEXT,
            metadata TEXT,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            released_at TEXT,
            FOREIGN KEY (id, head_id) REFERENCES arbor_nodes (tree_id, id)
        ) STRICT;
        CREATE INDEX arbor_trees_by_release ON arbor_trees (released_at, id);

        CREATE TABLE arbor_owners (
            tree_id TEXT NOT NULL REFERENCES arbor_trees (id),
            owner_id TEXT NOT NULL,
            count INTEGER NOT NULL CHECK (count > 0),
            PRIMARY KEY (tree_id, owner_id)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE arbor_nodes (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            tree_id TEXT NOT NULL REFERENCES arbor_trees (id),
            parent_id TEXT,
            content TEXT,
            handle TEXT,
            metadata TEXT,
            created_at TEXT NOT NULL,
            UNIQUE (tree_id, id),
            FOREIGN KEY (tree_id, parent_id) REFERENCES arbor_nodes (tree_id, id),
            CHECK ((content IS NULL) <> (handle IS NULL))
        ) STRICT;
        CREATE INDEX arbor_nodes_by_tree ON arbor_nodes (tree_id, seq);
        CREATE INDEX arbor_nodes_by_parent ON arbor_nodes (parent_id, seq);
        CREATE UNIQUE INDEX arbor_roots ON arbor_nodes (tree_id) WHERE parent_id IS NULL;
    "],
};

/// The nodes from the root to `?2` in the tree `?1`, with their distance from `?2`. A parent has a
/// lower `seq` than its children, which bounds the recursion even if the file has a cycle.
pub(super) const PATH: &str = "
    WITH RECURSIVE path (seq, id, parent_id, up) AS (
        SELECT seq, id, parent_id, 0 FROM arbor_nodes WHERE tree_id = ?1 AND id = ?2
        UNION ALL
        SELECT node.seq, node.id, node.parent_id, path.up + 1
        FROM path JOIN arbor_nodes AS node ON node.id = path.parent_id AND node.seq < path.seq
    )";

/// Reads the tree of this id, in the state that it has at the time `now`.
pub fn tree(db: &Connection, id: &str, now: Timestamp) -> Result<TreeSummary, ArborError> {
    let found = db
        .prepare_cached(
            "SELECT tree.id, tree.head_id, tree.metadata, tree.created_at, tree.updated_at,
                    tree.released_at, root.id AS root_id
             FROM arbor_trees AS tree
             JOIN arbor_nodes AS root ON root.tree_id = tree.id AND root.parent_id IS NULL
             WHERE tree.id = ?1",
        )?
        .query_row([id], |row| read_tree(row, now))
        .optional()?;
    let (mut tree, head) = found.ok_or_else(|| ArborError::TreeNotFound(id.to_owned()))?;
    tree.head = match head {
        Some(head) => head,
        None => newest(db, id)?,
    };
    tree.owners = owners(db, id)?;
    tree.ref_count = tree.owners.iter().map(|owner| owner.count).sum();
    Ok(tree)
}

/// The ids of the trees that are in this state at the time `now`, the newest first.
pub(super) fn trees_in(
    db: &Connection,
    state: State,
    now: Timestamp,
    limit: Option<u32>,
) -> rusqlite::Result<Vec<String>> {
    let picked = match state {
        State::Active => "released_at IS NULL AND ?1 IS NOT NULL",
        State::Scheduled => "released_at > ?1",
        State::Archived => "released_at <= ?1",
    };
    let limit = limit.map_or(-1, i64::from);
    let statement = format!("SELECT id FROM arbor_trees WHERE {picked} ORDER BY id DESC LIMIT ?2");
    texts(db, &statement, (released_by(now), limit))
}

/// The release time up to which trees are archived at the time `now`.
fn released_by(now: Timestamp) -> String {
    timestamp_text(
        now.checked_sub(ARCHIVE_GRACE_PERIOD)
            .unwrap_or(Timestamp::MIN),
    )
}

/// When a tree that was released at this time is archived.
fn archived_at(released: &str) -> Option<String> {
    let released: Timestamp = released.parse().ok()?;
    Some(timestamp_text(
        released.checked_add(ARCHIVE_GRACE_PERIOD).ok()?,
    ))
}

/// The nodes that the SQL `clauses` select.
pub(super) fn nodes(
    db: &Connection,
    with: &str,
    clauses: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<TreeNode>> {
    let statement = format!(
        "{with} SELECT node.id, node.parent_id, node.content, node.handle, node.metadata,
                node.created_at
         FROM arbor_nodes AS node {clauses}"
    );
    let mut statement = db.prepare_cached(&statement)?;
    let nodes = statement.query_map(params, read_node)?;
    let mut nodes: Vec<TreeNode> = nodes.collect::<rusqlite::Result<_>>()?;
    for node in &mut nodes {
        node.children = children(db, &node.id)?;
    }
    Ok(nodes)
}

/// The oldest nodes of a tree with the beginnings of their texts, without their children.
pub(super) fn beginnings(
    db: &Connection,
    tree: &str,
    characters: usize,
    limit: u32,
) -> rusqlite::Result<Vec<TreeNode>> {
    let mut statement = db.prepare_cached(
        "SELECT id, parent_id, substr(content, 1, ?2) AS content, handle, metadata, created_at
         FROM arbor_nodes WHERE tree_id = ?1 ORDER BY seq LIMIT ?3",
    )?;
    let characters = i64::try_from(characters).unwrap_or(i64::MAX);
    let nodes = statement.query_map((tree, characters, limit), read_node)?;
    nodes.collect()
}

/// The number of nodes of a tree.
pub(super) fn size(db: &Connection, tree: &str) -> rusqlite::Result<u64> {
    let size: i64 = db
        .prepare_cached("SELECT count(*) FROM arbor_nodes WHERE tree_id = ?1")?
        .query_row([tree], |row| row.get(0))?;
    Ok(size.unsigned_abs())
}

/// The structure of a tree: the parent and children of each node.
pub(super) fn structure(db: &Connection, tree: &str) -> rusqlite::Result<Vec<SkeletonNode>> {
    let mut statement = db.prepare_cached(
        "SELECT id, parent_id, handle IS NOT NULL FROM arbor_nodes WHERE tree_id = ?1 ORDER BY seq",
    )?;
    let structure = statement.query_map([tree], |row| {
        Ok(SkeletonNode {
            id: row.get(0)?,
            parent: row.get(1)?,
            children: Vec::new(),
            external: row.get(2)?,
        })
    })?;
    let mut structure: Vec<SkeletonNode> = structure.collect::<rusqlite::Result<_>>()?;
    for node in &mut structure {
        node.children = children(db, &node.id)?;
    }
    Ok(structure)
}

/// Fails unless the tree exists and has the node.
pub(super) fn must_have(db: &Connection, tree: &str, node: &str) -> Result<(), ArborError> {
    let found = db
        .prepare_cached("SELECT 1 FROM arbor_nodes WHERE tree_id = ?1 AND id = ?2")?
        .query_row([tree, node], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| ArborError::NodeNotFound {
        tree_id: tree.to_owned(),
        node_id: node.to_owned(),
    })
}

/// Fails unless the tree exists.
pub(super) fn must_exist(db: &Connection, tree: &str) -> Result<(), ArborError> {
    let found = db
        .prepare_cached("SELECT 1 FROM arbor_trees WHERE id = ?1")?
        .query_row([tree], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| ArborError::TreeNotFound(tree.to_owned()))
}

pub(super) fn children(db: &Connection, node: &str) -> rusqlite::Result<Vec<String>> {
    let statement = "SELECT id FROM arbor_nodes WHERE parent_id = ?1 ORDER BY seq";
    texts(db, statement, [node])
}

/// The texts that a statement returns.
pub(super) fn texts(
    db: &Connection,
    statement: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare_cached(statement)?;
    let texts = statement.query_map(params, |row| row.get(0))?;
    texts.collect()
}

fn newest(db: &Connection, tree: &str) -> rusqlite::Result<String> {
    db.prepare_cached("SELECT id FROM arbor_nodes WHERE tree_id = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([tree], |row| row.get(0))
}

fn owners(db: &Connection, tree: &str) -> rusqlite::Result<Vec<Owner>> {
    let mut statement = db.prepare_cached(
        "SELECT owner_id, count FROM arbor_owners WHERE tree_id = ?1 ORDER BY owner_id",
    )?;
    let owners = statement.query_map([tree], |row| {
        Ok(Owner {
            owner_id: row.get(0)?,
            count: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    owners.collect()
}

/// The tree, and its head if a head was set.
fn read_tree(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<(TreeSummary, Option<String>)> {
    let released: Option<String> = row.get("released_at")?;
    let state = match &released {
        None => State::Active,
        Some(released) if *released > released_by(now) => State::Scheduled,
        Some(_) => State::Archived,
    };
    let tree = TreeSummary {
        id: row.get("id")?,
        state,
        root: row.get("root_id")?,
        head: String::new(),
        owners: Vec::new(),
        ref_count: 0,
        metadata: object(row.get("metadata")?),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: released.as_deref().and_then(archived_at),
        scheduled_at: released,
    };
    Ok((tree, row.get("head_id")?))
}

fn read_node(row: &Row<'_>) -> rusqlite::Result<TreeNode> {
    #[derive(Deserialize)]
    struct Metadata {
        role: String,
    }
    let metadata = object(row.get("metadata")?);
    let known = metadata
        .as_ref()
        .and_then(|raw| raw.decode::<Metadata>().ok());
    Ok(TreeNode {
        id: row.get("id")?,
        parent: row.get("parent_id")?,
        children: Vec::new(),
        role: known.map(|known| known.role),
        content: row.get("content")?,
        handle: row.get("handle")?,
        metadata,
        created_at: row.get("created_at")?,
    })
}

/// Metadata in its original form. It was validated when it was stored.
fn object(text: Option<String>) -> Option<Raw> {
    Raw::parse(text?.into(), &Limits::default()).ok()
}
