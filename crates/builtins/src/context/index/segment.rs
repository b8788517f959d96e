//! A segment of the search index: the words and vectors of some nodes.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_mcp_store::rusqlite::{self, Row};
use sha2::{Digest, Sha256};

use super::Filter;
use crate::context::node::{Modality, Strings, searchable};
use crate::context::text::for_each_word;
use crate::context::vector::Vector;

/// The size of an encoded [`NodeFields`], in bytes.
const NODE_BYTES: usize = 36;

/// The size of an encoded occurrence, in bytes: the position of the node, and the count.
const OCCURRENCE_BYTES: usize = 6;

/// Indexed fields of a node, besides its words and its vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::context) struct NodeFields {
    /// Orders nodes as their ids do.
    pub(super) key: [u64; 2],
    /// In milliseconds since the Unix epoch.
    pub(super) updated_at: i64,
    pub(super) importance: f32,
    /// The length of the text in words.
    pub(super) words: u32,
    /// The length of the vector; 0 if the node has none.
    pub(super) vector_length: f32,
}

impl NodeFields {
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.key.map(u64::to_be_bytes).as_flattened());
        bytes.extend(self.updated_at.to_le_bytes());
        bytes.extend(self.importance.to_le_bytes());
        bytes.extend(self.words.to_le_bytes());
        bytes.extend(self.vector_length.to_le_bytes());
    }

    /// The nodes that [`NodeFields::encode`] wrote.
    pub(super) fn decode_all(bytes: &[u8]) -> Arc<[Self]> {
        let (nodes, _) = bytes.as_chunks::<NODE_BYTES>();
        let decode = |mut node: &[u8]| Self {
            key: [take(&mut node), take(&mut node)].map(u64::from_be_bytes),
            updated_at: i64::from_le_bytes(take(&mut node)),
            importance: f32::from_le_bytes(take(&mut node)),
            words: u32::from_le_bytes(take(&mut node)),
            vector_length: f32::from_le_bytes(take(&mut node)),
        };
        nodes.iter().map(|node| decode(node)).collect()
    }
}

/// Takes the next bytes of an encoded node, which has as many.
fn take<const BYTES: usize>(node: &mut &[u8]) -> [u8; BYTES] {
    match node.split_first_chunk() {
        Some((taken, rest)) => {
            *node = rest;
            *taken
        }
        None => [0; BYTES],
    }
}

/// A segment in memory: the tail, or one that is about to be stored.
#[derive(Debug)]
pub(in crate::context) struct Segment {
    pub(super) nodes: Arc<[NodeFields]>,
    /// The id of each node, sorted.
    pub(super) ids: Vec<String>,
    /// The encoded occurrences of each term.
    pub(super) postings: HashMap<Box<str>, Vec<u8>>,
    /// For each component of the vectors, the component of each node.
    pub(super) components: Vec<Vec<u8>>,
}

/// Makes a [`Segment`] of nodes, which are added sorted by id.
#[derive(Debug)]
pub(super) struct SegmentBuilder {
    segment: Segment,
    nodes: Vec<NodeFields>,
}

impl SegmentBuilder {
    /// The columns of a node that [`SegmentBuilder::add`] reads. `?1` is the name of the vectorizer.
    pub(super) const COLUMNS: &str = "id, namespace, key, content, modality, importance, tags, \
        updated_at, CASE embedder WHEN ?1 THEN vector END AS vector";

    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            segment: Segment {
                nodes: Arc::new([]),
                ids: Vec::new(),
                postings: HashMap::new(),
                components: vec![Vec::new(); dimensions],
            },
            nodes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let id: String = row.get("id")?;
        let tags = row.get::<_, Strings>("tags")?.0;
        let key: Option<String> = row.get("key")?;
        let text = searchable(key.as_deref(), &tags, row.get_ref("content")?.as_str()?);
        let filter = Filter {
            namespace: Some(row.get("namespace")?),
            tags,
            modality: Some(row.get("modality")?),
            updated_since: None,
        };
        let vector: Option<Vec<u8>> = row.get("vector")?;
        let vector = vector.as_deref().map(Vector::from_bytes);
        let words = self.add_terms(&text, &filter);
        let vector_length = self.add_vector(vector.as_ref());
        self.nodes.push(NodeFields {
            key: order_of(&id),
            updated_at: row.get("updated_at")?,
            importance: row.get("importance")?,
            words,
            vector_length,
        });
        self.segment.ids.push(id);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Segment {
        self.segment.nodes = self.nodes.into();
        self.segment
    }

    /// Adds the words of a node, and the terms by which it can be filtered. Returns the number of
    /// its words.
    fn add_terms(&mut self, text: &str, filter: &Filter) -> u32 {
        let Ok(position) = u32::try_from(self.nodes.len()) else {
            return 0;
        };
        let mut words = 0;
        for_each_word(text, |word| {
            words += 1;
            add_occurrence(&mut self.segment.postings, word, position);
        });
        for term in filter_terms(filter) {
            add_occurrence(&mut self.segment.postings, &term, position);
        }
        words
    }

    /// Adds the vector of a node, and returns its length. `None`, or a vector of other dimensions,
    /// becomes the zero vector.
    fn add_vector(&mut self, vector: Option<&Vector>) -> f32 {
        let dimensions = self.segment.components.len();
        let vector = vector.filter(|vector| vector.components().len() == dimensions);
        let components = vector.map_or(&[][..], Vector::components);
        let padded = components.iter().copied().chain(std::iter::repeat(0));
        for (of_each_node, component) in self.segment.components.iter_mut().zip(padded) {
            of_each_node.push(component.cast_unsigned());
        }
        vector.map_or(0.0, Vector::length)
    }
}

impl Segment {
    /// The encoded occurrences of a term.
    pub(super) fn postings(&self, term: &str) -> &[u8] {
        self.postings.get(term).map_or(&[], Vec::as_slice)
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        let ids = self.ids.as_slice();
        ids.binary_search_by(|known| known.as_str().cmp(id)).ok()
    }
}

/// The positions of the nodes that contain a term, and how often each does.
pub(super) fn occurrences(encoded: &[u8]) -> impl Iterator<Item = (u32, u16)> {
    let (encoded, _) = encoded.as_chunks::<OCCURRENCE_BYTES>();
    encoded.iter().map(|&[a, b, c, d, e, f]| {
        let position = u32::from_le_bytes([a, b, c, d]);
        (position, u16::from_le_bytes([e, f]))
    })
}

fn add_occurrence(postings: &mut HashMap<Box<str>, Vec<u8>>, term: &str, position: u32) {
    let encoded = match postings.get_mut(term) {
        Some(encoded) => encoded,
        None => postings.entry(term.into()).or_default(),
    };
    let position = position.to_le_bytes();
    if let Some([a, b, c, d, e, f]) = encoded.last_chunk_mut::<OCCURRENCE_BYTES>()
        && [*a, *b, *c, *d] == position
    {
        let count = u16::from_le_bytes([*e, *f]).saturating_add(1);
        [*e, *f] = count.to_le_bytes();
        return;
    }
    encoded.extend(position);
    encoded.extend(1_u16.to_le_bytes());
}

/// The terms that a node must have to match the filter. A word has only letters and digits, so none
/// is taken for one of these.
pub(super) fn filter_terms(filter: &Filter) -> Vec<String> {
    let namespace = filter
        .namespace
        .iter()
        .map(|name| format!("namespace:{name}"));
    let tags = filter.tags.iter().map(|tag| format!("tag:{tag}"));
    let modality = filter.modality.map(Modality::as_str);
    let modality = modality.map(|modality| format!("modality:{modality}"));
    namespace.chain(tags).chain(modality).collect()
}

/// A number that orders nodes as their ids do. An id that this program did not make has a place that
/// is always the same, too.
fn order_of(id: &str) -> [u64; 2] {
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let halves = id
        .strip_prefix("ctx_")
        .filter(|digits| digits.len() == 32)
        .and_then(|digits| digits.split_at_checked(16))
        .and_then(|(high, low)| Some([number(high)?, number(low)?]));
    halves.unwrap_or_else(|| {
        let sha = Sha256::digest(id);
        let mut sha: &[u8] = &sha;
        [take(&mut sha), take(&mut sha)].map(u64::from_be_bytes)
    })
}
