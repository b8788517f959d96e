//! Keeps the search index in step with the database, and finds the nodes that changed since a
//! revision.

use std::sync::{RwLock, RwLockReadGuard};

use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Row, Transaction};

use super::index::{Document, Index};
use super::node::{Strings, searchable};
use super::trigrams::Vectorizer;
use super::vector::Vector;

/// The search index, and the revision of the database up to which it is complete.
#[derive(Debug)]
pub(super) struct SyncedIndex {
    index: Index,
    revision: i64,
}

impl SyncedIndex {
    /// An empty index.
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            index: Index::new(dimensions),
            revision: 0,
        }
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// Applies the changes since the index's revision. The index may already be ahead of `db`, if
    /// `db` is an older snapshot.
    fn catch_up(&mut self, db: &Connection, vectorizer: &dyn Vectorizer) -> rusqlite::Result<()> {
        let mut statement = db.prepare_cached(
            "SELECT id, namespace, key, content, modality, importance, tags, updated_at, revision,
                 state = 'live' AS live, CASE embedder WHEN ?2 THEN vector END AS vector
             FROM context_nodes WHERE revision > ?1 ORDER BY revision",
        )?;
        let mut rows = statement.query((self.revision, vectorizer.name()))?;
        while let Some(row) = rows.next()? {
            self.apply(row)?;
        }
        Ok(())
    }

    fn apply(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let id: String = row.get("id")?;
        if row.get("live")? {
            let tags = row.get::<_, Strings>("tags")?.0;
            let key: Option<String> = row.get("key")?;
            let text = searchable(key.as_deref(), &tags, row.get_ref("content")?.as_str()?);
            let vector: Option<Vec<u8>> = row.get("vector")?;
            let vector = vector.as_deref().map(Vector::from_bytes);
            let document = Document {
                id,
                namespace: row.get("namespace")?,
                tags,
                modality: row.get("modality")?,
                updated_at: row.get("updated_at")?,
                importance: row.get("importance")?,
            };
            self.index.put(document, &text, vector.as_ref());
        } else {
            self.index.remove(&id);
        }
        self.revision = row.get("revision")?;
        Ok(())
    }
}

/// Returns the index after applying every change that `db` sees.
pub(super) fn up_to_date<'a>(
    synced: &'a RwLock<SyncedIndex>,
    db: &Connection,
    vectorizer: &dyn Vectorizer,
) -> rusqlite::Result<RwLockReadGuard<'a, SyncedIndex>> {
    let current = revision(db)?;
    let new = || SyncedIndex::new(vectorizer.dimensions().get());
    loop {
        match synced.read() {
            Ok(known) if known.revision >= current => return Ok(known),
            _ => {}
        }
        let mut behind = synced.write().unwrap_or_else(|poisoned| {
            // The thread that panicked may have left it half changed: start with an empty index.
            synced.clear_poison();
            let mut halfway = poisoned.into_inner();
            *halfway = new();
            halfway
        });
        if behind.revision < current {
            behind.catch_up(db, vectorizer)?;
            if behind.index.is_wasteful() {
                *behind = new();
                behind.catch_up(db, vectorizer)?;
            }
            // A node that was purged may have had the newest revision.
            behind.revision = behind.revision.max(current);
        }
    }
}

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
