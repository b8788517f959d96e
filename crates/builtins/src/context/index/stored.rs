//! The segments of the search index in the database: reads, writes and merges them.

use std::sync::Arc;

use plexus_mcp_store::rusqlite::{self, Connection, OptionalExtension, Transaction};

use super::segment::{NodeFields, Segment, SegmentBuilder};
use crate::context::trigrams::Vectorizer;
use crate::context::vector::add_products;

/// The tail becomes a segment when it has this many nodes. A search indexes the tail in memory when
/// it has changed, so it stays small.
pub(super) const MAX_TAIL_NODES: u32 = 64;

/// For each of these sizes, in nodes: smaller segments are merged into one when their sum reaches the
/// size. With more sizes, nodes would be written more often; with fewer, a search would read more
/// segments.
const MERGE_SIZES: [u32; 2] = [1_024, 8_192];

/// A segment of which one node in so many has left is written again without these.
const MAX_STALE_DIVISOR: u32 = 8;

/// The most nodes that one transaction adds to the index; more only if it merges segments. A store
/// of an earlier version has all nodes in the tail.
const MAX_STORED_NODES: u32 = 16_384;

/// The bits of the component number in `context_components.place`, below the segment number.
const COMPONENT_BITS: u32 = 20;

/// Keeps the index efficient: stores the tail if it has grown, merges small segments, and takes apart
/// a segment that has many stale positions. It is called at the end of each transaction that changes
/// nodes. Returns whether there may be more to do.
pub(in crate::context) fn maintain(
    transaction: &Transaction<'_>,
    vectorizer: &dyn Vectorizer,
) -> rusqlite::Result<bool> {
    release_stale(transaction)?;
    let tail = tail_size(transaction)?;
    if tail < MAX_TAIL_NODES {
        return Ok(false);
    }
    store_tail(transaction, vectorizer)?;
    for size in MERGE_SIZES {
        let mut small = transaction
            .prepare_cached("SELECT number, size FROM context_segments WHERE size < ?1")?;
        let small = small
            .query_map([size], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, u32)>>>()?;
        if small.iter().map(|(_, size)| size).sum::<u32>() >= size {
            for (number, _) in small {
                release(transaction, number)?;
            }
            store_tail(transaction, vectorizer)?;
        }
    }
    Ok(tail == MAX_STORED_NODES)
}

/// Whether all nodes but a short tail are in segments.
pub(in crate::context) fn is_stored(db: &Connection) -> rusqlite::Result<bool> {
    Ok(tail_size(db)? < MAX_TAIL_NODES)
}

/// The number of nodes in the tail, or the number that one transaction stores if there are more.
fn tail_size(db: &Connection) -> rusqlite::Result<u32> {
    db.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM context_nodes
         WHERE state = 'live' AND segment IS NULL LIMIT ?1)",
    )?
    .query_row([MAX_STORED_NODES], |row| row.get(0))
}

/// Takes segments apart of which many nodes have left.
fn release_stale(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut counts = transaction.prepare_cached(
        "SELECT number FROM
             (SELECT segment, count(*) AS stale FROM context_stale GROUP BY segment)
         JOIN context_segments ON number = segment WHERE stale * ?1 > size",
    )?;
    let numbers = counts
        .query_map([MAX_STALE_DIVISOR], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    for number in numbers {
        release(transaction, number)?;
    }
    Ok(())
}

/// Deletes a segment. Its nodes are in the tail then.
fn release(transaction: &Transaction<'_>, number: i64) -> rusqlite::Result<()> {
    let places = place(number, 0)..place(number + 1, 0);
    transaction
        .prepare_cached(
            "UPDATE context_nodes SET segment = NULL, position = NULL
             WHERE segment = ?1 AND state = 'live'",
        )?
        .execute([number])?;
    for statement in [
        "DELETE FROM context_segments WHERE number = ?1",
        "DELETE FROM context_postings WHERE segment = ?1",
        "DELETE FROM context_stale WHERE segment = ?1",
    ] {
        transaction.prepare_cached(statement)?.execute([number])?;
    }
    transaction
        .prepare_cached("DELETE FROM context_components WHERE place >= ?1 AND place < ?2")?
        .execute([places.start, places.end])?;
    Ok(())
}

/// Writes the tail to a new segment.
pub(super) fn store_tail(
    transaction: &Transaction<'_>,
    vectorizer: &dyn Vectorizer,
) -> rusqlite::Result<()> {
    let segment = tail(transaction, vectorizer, MAX_STORED_NODES)?;
    let mut nodes = Vec::new();
    for fields in segment.nodes.iter() {
        fields.encode(&mut nodes);
    }
    let number: i64 = transaction
        .prepare_cached(
            "INSERT INTO context_segments (size, embedder, nodes) VALUES (?1, ?2, ?3)
             RETURNING number",
        )?
        .query_row(
            (integer(segment.ids.len()), vectorizer.name(), nodes),
            |row| row.get(0),
        )?;
    let mut assign = transaction
        .prepare_cached("UPDATE context_nodes SET segment = ?2, position = ?3 WHERE id = ?1")?;
    for (position, id) in segment.ids.iter().enumerate() {
        assign.execute((id, number, integer(position)))?;
    }
    // In the order of the table, so that pages are appended.
    let mut postings: Vec<_> = segment.postings.into_iter().collect();
    postings.sort_unstable();
    let mut insert =
        transaction.prepare_cached("INSERT INTO context_postings VALUES (?1, ?2, ?3)")?;
    for (term, occurrences) in postings {
        insert.execute((number, &*term, occurrences))?;
    }
    let mut insert =
        transaction.prepare_cached("INSERT INTO context_components VALUES (?1, ?2)")?;
    for (component, of_each_node) in segment.components.into_iter().enumerate() {
        if of_each_node.iter().any(|&component| component != 0) {
            insert.execute((place(number, component), of_each_node))?;
        }
    }
    Ok(())
}

/// The live nodes that are in no segment, at most `limit`.
pub(super) fn tail(
    db: &Connection,
    vectorizer: &dyn Vectorizer,
    limit: u32,
) -> rusqlite::Result<Segment> {
    let mut segment = SegmentBuilder::new(vectorizer.dimensions().get());
    let columns = SegmentBuilder::COLUMNS;
    let mut statement = db.prepare_cached(&format!(
        "SELECT {columns} FROM context_nodes
         WHERE segment IS NULL AND state = 'live' ORDER BY id LIMIT ?2"
    ))?;
    let mut rows = statement.query((vectorizer.name(), limit))?;
    while let Some(row) = rows.next()? {
        segment.add(row)?;
    }
    Ok(segment.finish())
}

/// The nodes of a segment.
pub(super) fn nodes(db: &Connection, number: i64) -> rusqlite::Result<Arc<[NodeFields]>> {
    db.prepare_cached("SELECT nodes FROM context_segments WHERE number = ?1")?
        .query_row([number], |row| {
            Ok(NodeFields::decode_all(row.get_ref(0)?.as_blob()?))
        })
}

/// The id of the live node at a position of a segment.
pub(super) fn id(
    db: &Connection,
    number: i64,
    position: usize,
) -> rusqlite::Result<Option<String>> {
    db.prepare_cached(
        "SELECT id FROM context_nodes WHERE segment = ?1 AND position = ?2 AND state = 'live'",
    )?
    .query_row((number, integer(position)), |row| row.get(0))
    .optional()
}

/// The encoded occurrences of a term in a segment.
pub(super) fn postings(db: &Connection, number: i64, term: &str) -> rusqlite::Result<Vec<u8>> {
    let found = db
        .prepare_cached(
            "SELECT occurrences FROM context_postings WHERE segment = ?1 AND term = ?2",
        )?
        .query_row((number, term), |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Adds to the dot product of each node of a segment its components, each multiplied by a factor.
pub(super) fn add_dots(
    db: &Connection,
    number: i64,
    factors: impl Iterator<Item = (usize, i8)>,
    dots: &mut [i32],
) -> rusqlite::Result<()> {
    let mut statement =
        db.prepare_cached("SELECT of_each_node FROM context_components WHERE place = ?1")?;
    for (component, factor) in factors {
        let mut rows = statement.query([place(number, component)])?;
        if let Some(row) = rows.next()? {
            add_products(dots, row.get_ref(0)?.as_blob()?, factor);
        }
    }
    Ok(())
}

/// Where a component of the vectors of a segment is stored.
fn place(number: i64, component: usize) -> i64 {
    (number << COMPONENT_BITS) + integer(component)
}

/// A number as the database has it.
fn integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
