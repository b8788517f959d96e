//! In-memory cache of the search index.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plexus_mcp_store::rusqlite::{self, Connection};

use super::segment::{NodeFields, Segment};
use super::stored;
use crate::context::revisions::revision;
use crate::context::trigrams::Vectorizer;

/// What a process keeps of the index between searches: the fields of the nodes of each segment, and
/// the tail as it was at a revision. It can be dropped at any time.
#[derive(Debug, Default)]
pub(in crate::context) struct IndexCache {
    nodes: Mutex<HashMap<i64, Arc<[NodeFields]>>>,
    tail: Mutex<Option<(TailVersion, Arc<Segment>)>>,
}

/// The revision, and the numbers of the segments: the tail changes only with one of them.
type TailVersion = (i64, Vec<i64>);

/// The nodes of a segment.
#[derive(Debug)]
pub(super) struct StoredNodes {
    pub(super) number: i64,
    /// The name of the vectorizer that made the vectors.
    pub(super) embedder: String,
    pub(super) nodes: Arc<[NodeFields]>,
}

impl IndexCache {
    /// The nodes of every segment, sorted by segment number.
    pub(super) fn nodes(&self, db: &Connection) -> rusqlite::Result<Vec<StoredNodes>> {
        let mut statement =
            db.prepare_cached("SELECT number, embedder FROM context_segments ORDER BY number")?;
        let segments = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut kept = HashMap::new();
        let mut listed = Vec::new();
        for segment in segments {
            let (number, embedder): (i64, String) = segment?;
            let cached = lock(&self.nodes).get(&number).cloned();
            let nodes = match cached {
                Some(nodes) => nodes,
                None => stored::nodes(db, number)?,
            };
            kept.insert(number, Arc::clone(&nodes));
            listed.push(StoredNodes {
                number,
                embedder,
                nodes,
            });
        }
        // Those of segments that were merged are dropped.
        *lock(&self.nodes) = kept;
        Ok(listed)
    }

    pub(super) fn tail(
        &self,
        db: &Connection,
        segments: Vec<i64>,
        vectorizer: &dyn Vectorizer,
    ) -> rusqlite::Result<Arc<Segment>> {
        let version = (revision(db)?, segments);
        if let Some((cached, tail)) = &*lock(&self.tail)
            && *cached == version
        {
            return Ok(Arc::clone(tail));
        }
        let tail = Arc::new(stored::tail(db, vectorizer, u32::MAX)?);
        *lock(&self.tail) = Some((version, Arc::clone(&tail)));
        Ok(tail)
    }
}

/// A panic cannot leave a cache half changed.
fn lock<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
