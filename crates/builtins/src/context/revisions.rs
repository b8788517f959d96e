//! Revisions: each change of a node gives it the next one. Finds the nodes that changed since a
//! revision, and those that have no vector.

use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Transaction};

use super::node::{Strings, searchable};
use super::vector::Vector;

/// The revision of the database: the number of changes so far.
pub(super) fn revision(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT revision FROM context_revision")?
        .query_row([], |row| row.get(0))
}

/// Gives a node the next revision.
pub(super) fn touch(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    let revision = next_revision(transaction)?;
    transaction
        .prepare_cached("UPDATE context_nodes SET revision = ?2 WHERE id = ?1")?
        .execute((id, revision))?;
    Ok(())
}

/// The next revision. Write transactions are serialised, so a reader that sees a revision sees all
/// earlier ones.
pub(super) fn next_revision(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached("UPDATE context_revision SET revision = revision + 1 RETURNING revision")?
        .query_row([], |row| row.get(0))
}

/// The newest revision, and the ids of the nodes that changed after `since`.
pub(super) fn changed(db: &Connection, since: i64) -> rusqlite::Result<(i64, Vec<String>)> {
    let revision = revision(db)?;
    if revision <= since {
        return Ok((revision, Vec::new()));
    }
    let mut statement = db.prepare_cached("SELECT id FROM context_nodes WHERE revision > ?1")?;
    let ids = statement.query_map([since], |row| row.get(0))?;
    Ok((revision, ids.collect::<rusqlite::Result<_>>()?))
}

/// A node that has no vector yet.
#[derive(Debug)]
pub(super) struct WithoutVector {
    pub(super) id: String,
    pub(super) text: String,
    revision: i64,
}

/// Whether every live node has a vector of this vectorizer. It is found out without reading them.
pub(super) fn have_vectors(db: &Connection, vectorizer: &str) -> rusqlite::Result<bool> {
    // `IS NOT` would read all nodes; each of these looks into the index on `embedder`.
    db.prepare_cached(
        "SELECT NOT EXISTS
             (SELECT 1 FROM context_nodes WHERE state = 'live' AND embedder IS NULL)
         AND NOT EXISTS (SELECT 1 FROM context_nodes WHERE state = 'live' AND embedder < ?1)
         AND NOT EXISTS (SELECT 1 FROM context_nodes WHERE state = 'live' AND embedder > ?1)",
    )?
    .query_row([vectorizer], |row| row.get(0))
}

/// The next live nodes, by id, that have no vector of this vectorizer.
pub(super) fn without_vector(
    db: &Connection,
    vectorizer: &str,
    after: &str,
    limit: u32,
) -> rusqlite::Result<Vec<WithoutVector>> {
    let mut statement = db.prepare_cached(
        "SELECT id, key, tags, content, revision FROM context_nodes
         WHERE id > ?2 AND state = 'live' AND embedder IS NOT ?1 ORDER BY id LIMIT ?3",
    )?;
    let nodes = statement.query_map((vectorizer, after, limit), |row| {
        let key: Option<String> = row.get("key")?;
        let tags = row.get::<_, Strings>("tags")?.0;
        let content = row.get_ref("content")?.as_str()?;
        Ok(WithoutVector {
            id: row.get("id")?,
            text: searchable(key.as_deref(), &tags, content),
            revision: row.get("revision")?,
        })
    })?;
    nodes.collect()
}

/// Stores the vector of a node, unless the node has changed since it was read.
pub(super) fn set_vector(
    transaction: &Transaction<'_>,
    node: &WithoutVector,
    vectorizer: &str,
    vector: &Vector,
) -> rusqlite::Result<()> {
    let set = transaction
        .prepare_cached(
            "UPDATE context_nodes SET vector = ?3, embedder = ?4
             WHERE id = ?1 AND revision = ?2 RETURNING id",
        )?
        .query_row(
            (&node.id, node.revision, vector.to_bytes(), vectorizer),
            |_| Ok(()),
        )
        .optional()?;
    match set {
        Some(()) => touch(transaction, &node.id),
        None => Ok(()),
    }
}
