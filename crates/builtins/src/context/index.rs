//! The search index: an inverted index for BM25, and the vectors by component, both in the database.
//!
//! The index is made of segments, as in a log-structured merge tree. A segment holds up to some
//! thousand nodes and never changes. Nodes that are new or have changed are in no segment: they are
//! the tail, which is small and is indexed in memory for each revision. [`maintain`] writes the tail
//! to a segment when it has grown, and merges small segments, in the transaction that stores a node.
//!
//! So a search reads what its words need and nothing else, also the first search of a process.
//! Measured over 100,000 nodes of 60 words: see `docs/bench/growth.md`. The full-text search of
//! `SQLite` was rejected: it takes 77 ms for the words alone, since it reads a row for every match.

mod cache;
mod rank;
mod segment;
mod stored;

use std::borrow::Cow;
use std::sync::Arc;

use plexus_mcp_core::bm25::Bm25;
use plexus_mcp_store::rusqlite::{self, Connection};

use super::node::Modality;
use super::trigrams::Vectorizer;
use super::vector::{Vector, add_products, quotient};
pub(super) use cache::IndexCache;
use cache::StoredNodes;
pub(super) use rank::{Ranking, Slot};
use segment::{NodeFields, Segment, occurrences};
pub(super) use stored::{is_stored, maintain};

/// Restricts a search to some nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) namespace: Option<String>,
    /// A node must have all of these tags.
    pub(super) tags: Vec<String>,
    pub(super) modality: Option<Modality>,
    /// In milliseconds since the Unix epoch.
    pub(super) updated_since: Option<i64>,
}

/// The index as one snapshot of the database has it.
#[derive(Debug)]
pub(super) struct Index<'a> {
    db: &'a Connection,
    parts: Vec<Part>,
    /// For each slot, whether its node is live: it has not left the segment since.
    live: Vec<bool>,
    /// The number of live nodes.
    nodes: usize,
    /// The sum of the lengths of all live nodes, in words.
    total_length: u64,
}

/// A segment, and the slot of its first node. The tail is the last part.
#[derive(Debug)]
struct Part {
    start: Slot,
    nodes: Arc<[NodeFields]>,
    source: PartData,
}

#[derive(Debug)]
enum PartData {
    Stored { number: i64, has_vectors: bool },
    Tail(Arc<Segment>),
}

impl<'a> Index<'a> {
    pub(super) fn open(
        db: &'a Connection,
        cache: &IndexCache,
        vectorizer: &dyn Vectorizer,
    ) -> rusqlite::Result<Self> {
        let mut parts = Vec::new();
        let mut start = 0;
        let stored = cache.nodes(db)?;
        let numbers = stored.iter().map(|segment| segment.number).collect();
        for StoredNodes {
            number,
            embedder,
            nodes,
        } in stored
        {
            let size = nodes.len();
            parts.push(Part {
                start,
                nodes,
                source: PartData::Stored {
                    number,
                    has_vectors: embedder == vectorizer.name(),
                },
            });
            start += size;
        }
        let tail = cache.tail(db, numbers, vectorizer)?;
        let nodes = Arc::clone(&tail.nodes);
        let slots = start + nodes.len();
        parts.push(Part {
            start,
            nodes,
            source: PartData::Tail(tail),
        });
        let mut index = Self {
            db,
            parts,
            live: vec![true; slots],
            nodes: 0,
            total_length: 0,
        };
        index.read_stale()?;
        Ok(index)
    }

    fn read_stale(&mut self) -> rusqlite::Result<()> {
        let mut stale = self
            .db
            .prepare_cached("SELECT segment, position FROM context_stale")?;
        let mut rows = stale.query([])?;
        while let Some(row) = rows.next()? {
            let slot = self.slot_in_segment(row.get(0)?, row.get(1)?);
            if let Some(live) = slot.and_then(|slot| self.live.get_mut(slot)) {
                *live = false;
            }
        }
        let fields = self.parts.iter().flat_map(|part| part.nodes.iter());
        for (fields, _) in fields.zip(&self.live).filter(|(_, live)| **live) {
            self.nodes += 1;
            self.total_length += u64::from(fields.words);
        }
        Ok(())
    }

    /// The number of live nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes
    }

    /// The slot of a live node, of which the columns `segment` and `position` are given.
    pub(super) fn slot(&self, id: &str, place: Option<(i64, i64)>) -> Option<Slot> {
        match (place, self.parts.last()) {
            (Some((segment, position)), _) => self.slot_in_segment(segment, position),
            (None, Some(part)) => match &part.source {
                PartData::Tail(tail) => Some(part.start + tail.position(id)?),
                PartData::Stored { .. } => None,
            },
            (None, None) => None,
        }
    }

    fn slot_in_segment(&self, segment: i64, position: i64) -> Option<Slot> {
        let number = |part: &Part| match part.source {
            PartData::Stored { number, .. } => number,
            PartData::Tail(_) => i64::MAX,
        };
        let at = self.parts.binary_search_by_key(&segment, number).ok()?;
        let part = self.parts.get(at)?;
        let position = usize::try_from(position).ok()?;
        (position < part.nodes.len()).then_some(part.start + position)
    }

    fn part(&self, slot: Slot) -> Option<(&Part, usize)> {
        let at = self.parts.partition_point(|part| part.start <= slot);
        let part = self.parts.get(at.checked_sub(1)?)?;
        Some((part, slot - part.start))
    }

    fn fields(&self, slot: Slot) -> Option<&NodeFields> {
        let (part, position) = self.part(slot)?;
        part.nodes.get(position)
    }

    /// The id of the node in a slot.
    pub(super) fn id(&self, slot: Slot) -> rusqlite::Result<Option<String>> {
        let Some((part, position)) = self.part(slot) else {
            return Ok(None);
        };
        match &part.source {
            PartData::Tail(tail) => Ok(tail.ids.get(position).cloned()),
            PartData::Stored { number, .. } => stored::id(self.db, *number, position),
        }
    }

    pub(super) fn importance(&self, slot: Slot) -> Option<f32> {
        Some(self.fields(slot)?.importance)
    }

    /// The number of live nodes that contain this word.
    pub(super) fn frequency(&self, word: &str) -> rusqlite::Result<usize> {
        let mut frequency = 0;
        self.for_each_occurrence(word, |_, _| frequency += 1)?;
        Ok(frequency)
    }

    /// For each slot, whether the node is live and matches the filter.
    pub(super) fn eligible(&self, filter: &Filter) -> rusqlite::Result<Vec<bool>> {
        let mut eligible = self.live.clone();
        for term in segment::filter_terms(filter) {
            let mut has_term = vec![false; eligible.len()];
            self.for_each_occurrence(&term, |slot, _| {
                if let Some(has_term) = has_term.get_mut(slot) {
                    *has_term = true;
                }
            })?;
            for (eligible, has_term) in eligible.iter_mut().zip(has_term) {
                *eligible = *eligible && has_term;
            }
        }
        if let Some(since) = filter.updated_since {
            let fields = self.parts.iter().flat_map(|part| part.nodes.iter());
            for (eligible, fields) in eligible.iter_mut().zip(fields) {
                *eligible = *eligible && since <= fields.updated_at;
            }
        }
        Ok(eligible)
    }

    /// The nodes that contain any of these words, ranked by BM25.
    pub(super) fn by_words(
        &self,
        words: &[String],
        eligible: &[bool],
        limit: usize,
    ) -> rusqlite::Result<Ranking> {
        let mut scores = vec![0.0_f32; self.live.len()];
        let bm25 = Bm25::new(self.len(), self.total_length);
        let lengths: Vec<u32> = self
            .parts
            .iter()
            .flat_map(|part| part.nodes.iter().map(|fields| fields.words))
            .collect();
        let mut found = Vec::new();
        for word in words {
            found.clear();
            self.for_each_occurrence(word, |slot, count| found.push((slot, count)))?;
            let weight = bm25.term_weight(found.len());
            for &(slot, count) in &found {
                if let Some(score) = scores.get_mut(slot)
                    && let Some(&length) = lengths.get(slot)
                    && eligible.get(slot) == Some(&true)
                {
                    *score += bm25.term_score(weight, f32::from(count), length);
                }
            }
        }
        let scored = scores.into_iter().enumerate();
        Ok(self.best(scored.filter(|&(_, score)| score > 0.0), limit))
    }

    /// The nodes whose vectors are similar to this vector, ranked by cosine similarity.
    pub(super) fn by_vector(
        &self,
        vector: &Vector,
        threshold: f32,
        eligible: &[bool],
        limit: usize,
    ) -> rusqlite::Result<Ranking> {
        let mut dots = vec![0; self.live.len()];
        for part in &self.parts {
            let end = part.start + part.nodes.len();
            let Some(dots) = dots.get_mut(part.start..end) else {
                continue;
            };
            let factors = vector.components().iter().copied().enumerate();
            let factors = factors.filter(|&(_, factor)| factor != 0);
            match &part.source {
                PartData::Stored {
                    has_vectors: false, ..
                } => {}
                PartData::Stored { number, .. } => {
                    stored::add_dots(self.db, *number, factors, dots)?;
                }
                PartData::Tail(tail) => {
                    for (component, factor) in factors {
                        if let Some(of_each_node) = tail.components.get(component) {
                            add_products(dots, of_each_node, factor);
                        }
                    }
                }
            }
        }
        let lengths = self
            .parts
            .iter()
            .flat_map(|part| part.nodes.iter().map(|fields| fields.vector_length));
        let similar = dots
            .into_iter()
            .zip(lengths)
            .map(|(dot, length)| quotient(dot, length * vector.length()))
            .enumerate()
            .zip(eligible)
            .filter(|&((_, cosine), &eligible)| eligible && cosine >= threshold)
            .map(|(scored, _)| scored);
        Ok(self.best(similar, limit))
    }

    /// The best nodes of a ranking, the best first. Ties are broken by id, so that the order never
    /// depends on the order in which nodes were added.
    pub(super) fn best(
        &self,
        scored: impl IntoIterator<Item = (Slot, f32)>,
        limit: usize,
    ) -> Ranking {
        rank::best(scored, limit, |slot| {
            self.fields(slot).map(|fields| fields.key)
        })
    }

    /// Calls `each` with the slot of every live node that contains the term, and with the number of
    /// times that it does.
    fn for_each_occurrence(
        &self,
        term: &str,
        mut each: impl FnMut(Slot, u16),
    ) -> rusqlite::Result<()> {
        for part in &self.parts {
            let bytes = match &part.source {
                PartData::Stored { number, .. } => {
                    Cow::Owned(stored::postings(self.db, *number, term)?)
                }
                PartData::Tail(tail) => Cow::Borrowed(tail.postings(term)),
            };
            for (position, count) in occurrences(&bytes) {
                let slot = part.start + position as usize;
                if self.live.get(slot) == Some(&true) {
                    each(slot, count);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
