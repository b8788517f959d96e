//! `docs/requirements.md` lists every requirement, and what it says of tests is true.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// How many requirements each document has, and how many resolutions there are.
const COUNTS: [(&str, usize); 6] = [
    ("S000-", 55),
    ("S001-", 82),
    ("S002-", 44),
    ("S003-", 61),
    ("S004-", 77),
    ("C", 57),
];

/// A line of a table of the page.
struct Row {
    id: String,
    words: String,
    place: String,
}

#[test]
fn every_requirement_is_listed_once_and_in_order() {
    let listed: Vec<_> = rows().into_iter().map(|row| row.id).collect();
    assert_eq!(listed, all_ids());
}

#[test]
fn every_requirement_has_words_and_a_place() {
    let known = all_ids();
    for Row { id, words, place } in rows() {
        assert!(!words.is_empty(), "{id} says nothing");
        let resolution = ids(&place)
            .into_iter()
            .find(|named| named.starts_with('C') && known.contains(named));
        let is_placed = resolution.is_some()
            || !files(&place).is_empty()
            || place.contains("not yet: ")
            || place.contains("does not apply: ");
        assert!(is_placed, "{id} has no place: {place}");
    }
}

#[test]
fn files_name_the_requirements_that_they_test() {
    let mut named_in = BTreeMap::new();
    let mut untrue = Vec::new();
    for Row { id, place, .. } in rows() {
        for file in files(&place) {
            let named = named_in
                .entry(file.to_owned())
                .or_insert_with(|| fs::read_to_string(root().join(file)).map(|text| ids(&text)));
            match named {
                Ok(named) if named.contains(&id) => {}
                Ok(_) => untrue.push(format!("{file} does not name {id}")),
                Err(error) => untrue.push(format!("{file}, for {id}: {error}")),
            }
        }
    }
    assert!(untrue.is_empty(), "{}", untrue.join("\n"));
}

#[test]
fn ranges_name_what_is_between() {
    let text = "//! (S002-06…08, S003-28), C05 to\n//! C07 and HDR26-05";
    let expected = [
        "S002-06", "S002-07", "S002-08", "S003-28", "C05", "C06", "C07",
    ];
    assert_eq!(ids(text), expected);
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn all_ids() -> Vec<String> {
    let ids = |(document, count)| (1..=count).map(move |number| format!("{document}{number:02}"));
    COUNTS.into_iter().flat_map(ids).collect()
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<_> = cells.split(" | ").collect();
        let [id, words, place] = cells[..] else {
            panic!("a row has three cells: {line}");
        };
        (id != "id").then(|| Row {
            id: id.to_owned(),
            words: words.to_owned(),
            place: place.to_owned(),
        })
    });
    rows.collect()
}

/// The files that a cell names.
fn files(place: &str) -> Vec<&str> {
    let quoted = place.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.contains('/') && text.contains('.') && !text.starts_with('.'))
        .collect()
}

/// The ids that a text names, those between the ends of a range included.
fn ids(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '…';
    let mut words = text
        .split(|c| !is_part(c))
        .filter(|word| !word.is_empty())
        .peekable();
    let mut ids = Vec::new();
    while let Some(word) = words.next() {
        let (first, last) = word.split_once('…').unwrap_or((word, ""));
        let Some((document, first)) = parts(first) else {
            continue;
        };
        let mut last = last.parse().unwrap_or(first);
        if words.next_if_eq(&"to").is_some()
            && let Some((same, end)) = words.peek().and_then(|word| parts(word))
            && same == document
        {
            last = end;
            words.next();
        }
        ids.extend((first..=last).map(|number| format!("{document}{number:02}")));
    }
    ids
}

/// `S002-14` is number 14 of `S002-`.
fn parts(id: &str) -> Option<(&'static str, usize)> {
    let (document, _) = COUNTS
        .iter()
        .find(|(document, _)| id.starts_with(document))?;
    let number = id.strip_prefix(document)?;
    (number.len() == 2)
        .then(|| number.parse().ok())
        .flatten()
        .map(|number| (*document, number))
}
