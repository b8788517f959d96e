//! What searches look at, in memory.
//!
//! An inverted index for BM25 and all vectors side by side: a search over 100,000 nodes takes a few
//! milliseconds. `SQLite`'s full-text search was measured for the same: it reads the matching rows
//! of common words from the file one by one, several times slower, and leaves the vectors to us
//! anyway.
//!
//! The index is made from the store and follows it: see [`super::sync`]. A place, once given, is
//! never given again; a node that changes moves to a new one. What the old places cost is got back
//! by making the index anew, see [`Index::is_wasteful`].

use std::cmp::Ordering;
use std::collections::HashMap;

use super::node::Modality;
use super::text::for_each_word;
use super::vector::{Vector, Vectors};

/// BM25: how soon another occurrence of a word stops to matter.
const SATURATION: f32 = 1.2;
/// BM25: how much long texts are held to have more words by chance.
const LENGTH_PENALTY: f32 = 0.75;

/// What the index knows of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    pub(super) id: String,
    pub(super) namespace: String,
    pub(super) tags: Vec<String>,
    pub(super) modality: Modality,
    /// In milliseconds.
    pub(super) updated_at: i64,
    pub(super) importance: f32,
}

/// Which nodes a search is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) namespace: Option<String>,
    /// All of them.
    pub(super) tags: Vec<String>,
    pub(super) modality: Option<Modality>,
    /// In milliseconds.
    pub(super) updated_since: Option<i64>,
}

impl Filter {
    fn takes(&self, document: &Document) -> bool {
        let Self {
            namespace,
            tags,
            modality,
            updated_since,
        } = self;
        namespace.as_ref().is_none_or(|it| *it == document.namespace)
            && modality.is_none_or(|it| it == document.modality)
            && updated_since.is_none_or(|it| it <= document.updated_at)
            && tags.iter().all(|tag| document.tags.contains(tag))
    }
}

/// A node's place in the index.
pub(super) type Place = usize;

/// Nodes with what a scorer gives them, the best first.
pub(super) type Ranking = Vec<(Place, f32)>;

#[derive(Debug)]
pub(super) struct Index {
    documents: Vec<Option<Indexed>>,
    places: HashMap<String, Place>,
    words: HashMap<Box<str>, usize>,
    postings: Vec<Postings>,
    vectors: Vectors,
    /// Of all live documents, in words.
    total_length: u64,
}

#[derive(Debug)]
struct Indexed {
    document: Document,
    /// In words.
    length: u32,
    /// The numbers of its words, sorted.
    words: Box<[usize]>,
}

#[derive(Debug, Default)]
struct Postings {
    /// How many live documents have the word.
    live: usize,
    /// Where it is and how often, by place. Places of the dead are among them.
    occurrences: Vec<(u32, u32)>,
}

impl Index {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            documents: Vec::new(),
            places: HashMap::new(),
            words: HashMap::new(),
            postings: Vec::new(),
            vectors: Vectors::new(dimensions),
            total_length: 0,
        }
    }

    /// How many nodes can be found.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether most of the index is about what is gone.
    pub(super) fn is_wasteful(&self) -> bool {
        self.documents.len() > 2 * self.len() + 1_000
    }

    /// Adds a node, or replaces it.
    pub(super) fn put(&mut self, document: Document, text: &str, vector: Option<&Vector>) {
        self.remove(&document.id);
        let Ok(place) = u32::try_from(self.documents.len()) else {
            // Four thousand million changes without making the index anew: see `is_wasteful`.
            return;
        };
        let mut counts: HashMap<usize, u32> = HashMap::new();
        let mut length = 0_u32;
        for_each_word(text, |word| {
            *counts.entry(self.number(word)).or_default() += 1;
            length = length.saturating_add(1);
        });
        for (&word, &count) in &counts {
            if let Some(postings) = self.postings.get_mut(word) {
                postings.live += 1;
                postings.occurrences.push((place, count));
            }
        }
        self.total_length += u64::from(length);
        self.places.insert(document.id.clone(), self.documents.len());
        self.vectors.push(vector);
        let mut words: Box<[usize]> = counts.into_keys().collect();
        words.sort_unstable();
        self.documents.push(Some(Indexed {
            document,
            length,
            words,
        }));
    }

    /// Takes a node out, if it is there.
    pub(super) fn remove(&mut self, id: &str) {
        let Some(place) = self.places.remove(id) else {
            return;
        };
        let Some(indexed) = self.documents.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.total_length -= u64::from(indexed.length);
        for word in indexed.words {
            if let Some(postings) = self.postings.get_mut(word) {
                postings.live -= 1;
            }
        }
    }

    pub(super) fn place(&self, id: &str) -> Option<Place> {
        self.places.get(id).copied()
    }

    pub(super) fn document(&self, place: Place) -> Option<&Document> {
        let indexed = self.documents.get(place)?.as_ref()?;
        Some(&indexed.document)
    }

    pub(super) fn documents(&self) -> impl Iterator<Item = (Place, &Document)> {
        let indexed = self.documents.iter().enumerate();
        indexed.filter_map(|(place, indexed)| Some((place, &indexed.as_ref()?.document)))
    }

    pub(super) fn vector(&self, place: Place) -> Option<Vector> {
        self.vectors.get(place)
    }

    /// What part of the words of two nodes both have.
    pub(super) fn shared_words(&self, a: Place, b: Place) -> f32 {
        let words = |place: Place| Some(&self.documents.get(place)?.as_ref()?.words);
        let (Some(a), Some(b)) = (words(a), words(b)) else {
            return 0.0;
        };
        let common = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
        let all = a.len() + b.len() - common;
        float(common) / float(all.max(1))
    }

    /// How many nodes have this word.
    pub(super) fn frequency(&self, word: &str) -> usize {
        self.postings_of(word).map_or(0, |postings| postings.live)
    }

    /// For each place, whether a search with this filter is about it.
    pub(super) fn eligible(&self, filter: &Filter) -> Vec<bool> {
        let takes = |indexed: &Indexed| filter.takes(&indexed.document);
        let documents = self.documents.iter();
        documents
            .map(|indexed| indexed.as_ref().is_some_and(takes))
            .collect()
    }

    /// Those who have any of these words, by BM25.
    pub(super) fn by_words(&self, words: &[String], eligible: &[bool], limit: usize) -> Ranking {
        let mut scores = vec![0.0_f32; self.documents.len()];
        let live = float(self.len());
        let average = (float_u64(self.total_length) / live.max(1.0)).max(1.0);
        for postings in words.iter().filter_map(|word| self.postings_of(word)) {
            let with = float(postings.live);
            let rarity = (1.0 + (live - with + 0.5) / (with + 0.5)).ln();
            for &(place, count) in &postings.occurrences {
                let place = place as usize;
                if !eligible.get(place).is_some_and(|&eligible| eligible) {
                    continue;
                }
                let (Some(score), Some(Some(indexed))) =
                    (scores.get_mut(place), self.documents.get(place))
                else {
                    continue;
                };
                let count = float_u32(count);
                let length = float_u32(indexed.length) / average;
                let discount = SATURATION * (1.0 - LENGTH_PENALTY + LENGTH_PENALTY * length);
                *score += rarity * count * (SATURATION + 1.0) / (count + discount);
            }
        }
        let scored = scores.into_iter().enumerate();
        self.best(scored.filter(|&(_, score)| score > 0.0).collect(), limit)
    }

    /// Those whose vectors are similar to this one, by cosine.
    pub(super) fn by_vector(
        &self,
        vector: &Vector,
        threshold: f32,
        eligible: &[bool],
        limit: usize,
    ) -> Ranking {
        let cosines = self.vectors.cosines(vector).enumerate().zip(eligible);
        let similar = cosines
            .filter(|&((_, cosine), &eligible)| eligible && cosine >= threshold)
            .map(|(scored, _)| scored);
        self.best(similar.collect(), limit)
    }

    /// The best of these, best first. Ties are broken by id, so that the order never depends on
    /// how the index came about.
    pub(super) fn best(&self, mut scored: Ranking, limit: usize) -> Ranking {
        let order = |a: &(Place, f32), b: &(Place, f32)| self.by_score(a, b);
        if scored.len() > limit && limit > 0 {
            scored.select_nth_unstable_by(limit - 1, order);
        }
        scored.truncate(limit);
        scored.sort_unstable_by(order);
        scored
    }

    fn by_score(&self, a: &(Place, f32), b: &(Place, f32)) -> Ordering {
        let id = |place| self.document(place).map(|document| document.id.as_str());
        b.1.total_cmp(&a.1).then_with(|| id(a.0).cmp(&id(b.0)))
    }

    fn postings_of(&self, word: &str) -> Option<&Postings> {
        self.postings.get(*self.words.get(word)?)
    }

    fn number(&mut self, word: &str) -> usize {
        if let Some(&number) = self.words.get(word) {
            return number;
        }
        let number = self.postings.len();
        self.words.insert(word.into(), number);
        self.postings.push(Postings::default());
        number
    }
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float(count: usize) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float_u32(count: u32) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float_u64(count: u64) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests;
