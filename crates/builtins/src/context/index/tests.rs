use std::future::ready;
use std::num::NonZeroUsize;

use plexus_mcp_core::Boxed;

use super::*;
use crate::context::MIGRATIONS;
use crate::context::trigrams::VectorizeError;

/// Vectors of two components, which the tests choose.
#[derive(Debug)]
struct Plane;

impl Vectorizer for Plane {
    fn name(&self) -> &'static str {
        "plane"
    }

    fn dimensions(&self) -> NonZeroUsize {
        NonZeroUsize::new(2).unwrap()
    }

    fn threshold(&self) -> f32 {
        0.5
    }

    fn vectorize(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, VectorizeError>> {
        Box::pin(ready(Ok(vec![vec![0.0; 2]; texts.len()])))
    }
}

/// A node, by number, so that ids are ordered as the numbers.
#[derive(Clone)]
struct Node {
    number: u32,
    text: String,
    namespace: &'static str,
    tags: &'static str,
    modality: &'static str,
    updated_at: i64,
    vector: Option<[f32; 2]>,
}

fn node(number: u32, text: &str) -> Node {
    Node {
        number,
        text: text.to_owned(),
        namespace: "default",
        tags: "[]",
        modality: "text",
        updated_at: 0,
        vector: None,
    }
}

fn id(number: u32) -> String {
    format!("ctx_{number:032x}")
}

struct Database(Connection);

impl Database {
    fn new() -> Self {
        let db = Self(Connection::open_in_memory().unwrap());
        for step in MIGRATIONS.steps {
            db.0.execute_batch(step).unwrap();
        }
        db
    }

    fn of(texts: &[&str]) -> Self {
        let db = Self::new();
        for (number, text) in (0..).zip(texts) {
            db.put(&node(number, text));
        }
        db
    }

    fn put(&self, node: &Node) {
        let vector = node.vector.map(|vector| Vector::of(&vector).to_bytes());
        let embedder = vector.as_ref().map(|_| "plane");
        self.0
            .execute(
                "INSERT INTO context_nodes (id, namespace, content, modality, importance, tags,
                     vector, embedder, created_at, updated_at, state, revision)
                 VALUES (?1, ?2, ?3, ?4, 0.5, ?5, ?6, ?7, 0, ?8, 'live', ?9)
                 ON CONFLICT (id) DO UPDATE SET content = excluded.content,
                     state = excluded.state, revision = excluded.revision",
                (
                    id(node.number),
                    node.namespace,
                    &node.text,
                    node.modality,
                    node.tags,
                    vector,
                    embedder,
                    node.updated_at,
                    self.next_revision(),
                ),
            )
            .unwrap();
    }

    fn next_revision(&self) -> i64 {
        let next = "UPDATE context_revision SET revision = revision + 1 RETURNING revision";
        self.0.query_row(next, [], |row| row.get(0)).unwrap()
    }

    fn forget(&self, number: u32) {
        let forget = "UPDATE context_nodes SET state = 'forgotten', purge_at = 1, revision = ?2
             WHERE id = ?1";
        let revision = self.next_revision();
        self.0.execute(forget, (id(number), revision)).unwrap();
    }

    fn write<T>(&self, work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>) -> T {
        let transaction = self.0.unchecked_transaction().unwrap();
        let done = work(&transaction).unwrap();
        transaction.commit().unwrap();
        done
    }

    /// Writes the tail to a segment, however short it is.
    fn store_tail(&self) {
        self.write(|transaction| stored::store_tail(transaction, &Plane));
    }

    fn maintain(&self) -> bool {
        self.write(|transaction| maintain(transaction, &Plane))
    }

    fn count(&self, of: &str) -> u32 {
        let statement = format!("SELECT count(*) FROM {of}");
        self.0.query_row(&statement, [], |row| row.get(0)).unwrap()
    }

    fn index(&self) -> Index<'_> {
        Index::open(&self.0, &IndexCache::default(), &Plane).unwrap()
    }

    fn eligible(&self, filter: &Filter) -> Vec<u32> {
        let index = self.index();
        let eligible = index.eligible(filter).unwrap().into_iter().enumerate();
        let slots = eligible.filter(|&(_, eligible)| eligible);
        slots.map(|(slot, _)| number(&index, slot)).collect()
    }

    /// The numbers and scores of the nodes that have these words, the best first.
    fn ranked(&self, words: &[&str], limit: usize) -> Vec<(u32, f32)> {
        let index = self.index();
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let eligible = index.eligible(&Filter::default()).unwrap();
        let ranking = index.by_words(&words, &eligible, limit).unwrap();
        let numbered = ranking.into_iter();
        numbered
            .map(|(slot, score)| (number(&index, slot), score))
            .collect()
    }

    fn found(&self, words: &[&str], limit: usize) -> Vec<u32> {
        let ranked = self.ranked(words, limit).into_iter();
        ranked.map(|(number, _)| number).collect()
    }
}

fn number(index: &Index<'_>, slot: Slot) -> u32 {
    let id = index.id(slot).unwrap().unwrap();
    u32::from_str_radix(id.strip_prefix("ctx_").unwrap(), 16).unwrap()
}

#[test]
fn rare_words_frequent_mentions_and_short_texts_count_more() {
    let db = Database::of(&[
        "token storage, and then a great many other words about other matters",
        "token storage, token again",
        "token storage",
        "rotation storage",
        "weather report",
    ]);
    for _ in ["in the tail", "in a segment"] {
        assert_eq!(db.found(&["token"], 9), [1, 2, 0]);
        assert_eq!(db.found(&["rotation", "storage"], 1), [3]);
        assert_eq!(db.found(&["storage", "unheard"], 9).len(), 4);
        assert!(db.found(&[], 9).is_empty());
        db.store_tail();
    }
}

/// The same nodes give the same scores, however they are spread over segments.
#[test]
fn segments_do_not_change_a_ranking() {
    let text = |number: u32| {
        let word = |factor: u32| format!("word{}", number * factor % 23);
        [word(3), word(5), word(7), "token".to_owned()].join(" ")
    };
    let at_once = Database::new();
    let in_parts = Database::new();
    for number in 0..200 {
        let mut node = node(number, &text(number));
        node.vector = Some([1.0, f32::from(u16::try_from(number).unwrap())]);
        at_once.put(&node);
    }
    // In another order, with texts that are replaced, and nodes that are forgotten.
    for number in (0..260).rev() {
        let mut node = node(number, "token of an older text");
        node.vector = Some([1.0, f32::from(u16::try_from(number).unwrap())]);
        in_parts.put(&node);
        if number % 37 == 0 {
            in_parts.store_tail();
        }
    }
    for number in 0..260 {
        in_parts.put(&node(number, &text(number)));
        if number >= 200 {
            in_parts.forget(number);
        }
        if number % 41 == 0 {
            in_parts.store_tail();
        }
    }
    assert!(in_parts.count("context_segments") > 10);
    assert!(in_parts.count("context_stale") > 100);
    for words in [&["token"][..], &["word3", "word7"], &["token", "word1"]] {
        assert_eq!(at_once.ranked(words, 50), in_parts.ranked(words, 50));
    }
    let similar = |db: &Database| {
        let index = db.index();
        let eligible = index.eligible(&Filter::default()).unwrap();
        let ranking = index.by_vector(&Vector::of(&[1.0, 3.0]), 0.5, &eligible, 50);
        let ranking = ranking.unwrap().into_iter();
        let numbered = ranking.map(|(slot, score)| (number(&index, slot), score));
        numbered.collect::<Vec<_>>()
    };
    assert_eq!(similar(&at_once), similar(&in_parts));
    assert_eq!(similar(&at_once).len(), 50);
}

/// The same input gives the same output, in whichever order nodes were added.
#[test]
fn ties_are_broken_by_id() {
    let db = Database::new();
    for number in (0..1_000).rev() {
        db.put(&node(number, "token"));
        if number % 300 == 0 {
            db.store_tail();
        }
    }
    assert_eq!(db.found(&["token"], 3), [0, 1, 2]);
    let all: Vec<u32> = (0..1_000).collect();
    assert_eq!(db.found(&["token"], 2_000), all);
}

#[test]
fn replaced_and_removed_documents_are_not_found() {
    let db = Database::of(&["token", "token rotation"]);
    db.store_tail();
    db.put(&node(0, "weather"));
    assert_eq!(db.found(&["token"], 9), [1]);
    assert_eq!(db.found(&["weather"], 9), [0]);
    let index = db.index();
    assert_eq!((index.len(), index.frequency("token").unwrap()), (2, 1));
    db.forget(1);
    assert!(db.found(&["token"], 9).is_empty());
    let index = db.index();
    assert_eq!((index.len(), index.frequency("token").unwrap()), (1, 0));
    // Deleting a node that was not forgotten before.
    db.store_tail();
    let delete = "DELETE FROM context_nodes WHERE state = 'live'";
    db.0.execute(delete, []).unwrap();
    db.next_revision();
    assert_eq!(db.index().len(), 0);
}

/// However many nodes there are, a search reads a few segments and a short tail.
#[test]
fn segments_are_merged_and_the_tail_stays_short() {
    let db = Database::new();
    for number in 0..20_000 {
        db.put(&node(number, "token"));
        if number % 50 == 0 {
            assert!(!db.maintain());
        }
    }
    assert!(!db.maintain());
    assert!(db.count("context_nodes WHERE segment IS NULL") < stored::MAX_TAIL_NODES);
    assert!(db.count("context_segments") <= 30);
    assert_eq!(db.index().len(), 20_000);
    assert_eq!(db.found(&["token"], 2), [0, 1]);
}

/// Nodes that change again and again do not fill the index with stale positions.
#[test]
fn a_segment_that_many_nodes_have_left_is_written_again() {
    let db = Database::new();
    for number in 0..400 {
        db.put(&node(number, "token"));
    }
    db.maintain();
    for round in 0..2_000 {
        db.put(&node(round % 400, "other token"));
        db.maintain();
    }
    assert!(db.count("context_stale") <= 400 / 8 + 8);
    assert!(db.count("context_segments") <= 20);
    let leftovers = "context_postings WHERE segment NOT IN (SELECT number FROM context_segments)";
    assert_eq!(db.count(leftovers), 0);
    assert_eq!(db.index().frequency("other").unwrap(), 400);
}

/// A database of a version that had no index is searched before the index is stored, and then
/// stored in several transactions.
#[test]
fn nodes_of_an_earlier_version_are_found() {
    let db = Database(Connection::open_in_memory().unwrap());
    let (first, rest) = MIGRATIONS.steps.split_first().unwrap();
    db.0.execute_batch(first).unwrap();
    for number in 0..17_000 {
        db.put(&node(number, "token"));
    }
    for step in rest {
        db.0.execute_batch(step).unwrap();
    }
    assert!(!is_stored(&db.0).unwrap());
    assert_eq!(db.index().frequency("token").unwrap(), 17_000);
    assert!(db.maintain());
    assert!(!db.maintain());
    assert!(is_stored(&db.0).unwrap());
    assert_eq!(db.index().frequency("token").unwrap(), 17_000);
}

/// The cache of a process follows changes of the database.
#[test]
fn a_cache_does_not_hide_changes() {
    let db = Database::of(&["token"]);
    let cache = IndexCache::default();
    let frequency = || {
        let index = Index::open(&db.0, &cache, &Plane).unwrap();
        index.frequency("token").unwrap()
    };
    assert_eq!(frequency(), 1);
    db.put(&node(1, "token"));
    assert_eq!(frequency(), 2);
    db.store_tail();
    assert_eq!(frequency(), 2);
    db.forget(0);
    assert_eq!(frequency(), 1);
    db.put(&node(2, "token"));
    db.store_tail();
    assert_eq!(frequency(), 2);
}

#[test]
fn documents_must_match_every_filter() {
    let db = Database::new();
    db.put(&Node {
        namespace: "project",
        tags: r#"["auth","draft"]"#,
        modality: "code",
        updated_at: 1_000,
        ..node(0, "token")
    });
    db.put(&node(1, "token"));
    let strings = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect();
    let project = Filter {
        namespace: Some("project".to_owned()),
        tags: strings(&["draft", "auth"]),
        modality: Some(Modality::Code),
        updated_since: Some(1_000),
    };
    for _ in ["in the tail", "in a segment"] {
        assert_eq!(db.eligible(&Filter::default()), [0, 1]);
        assert_eq!(db.eligible(&project), [0]);
        let too_many_tags = Filter {
            tags: strings(&["auth", "final"]),
            ..project.clone()
        };
        assert!(db.eligible(&too_many_tags).is_empty());
        let later = Filter {
            updated_since: Some(1_001),
            ..Filter::default()
        };
        assert!(db.eligible(&later).is_empty());
        db.store_tail();
    }
}

#[test]
fn vectors_are_ranked_from_the_threshold_on() {
    let db = Database::new();
    for (number, vector) in [(0, [1.0, 0.0]), (1, [0.0, 1.0]), (2, [1.0, 1.0])] {
        db.put(&Node {
            vector: Some(vector),
            ..node(number, "")
        });
    }
    for _ in ["in the tail", "in a segment"] {
        let index = db.index();
        let east = Vector::of(&[1.0, 0.0]);
        let live = index.eligible(&Filter::default()).unwrap();
        let ranking = index.by_vector(&east, 0.5, &live, 9).unwrap();
        let numbers: Vec<_> = ranking.iter().map(|it| number(&index, it.0)).collect();
        assert_eq!(numbers, [0, 2]);
        let ranking = index.by_vector(&east, 0.5, &[false, true, true], 9);
        assert_eq!(ranking.unwrap().len(), 1);
        db.store_tail();
    }
}
