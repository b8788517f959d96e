//! Checks `docs/requirements.md` and `docs/checklist.md`: all ids are listed, and the named test
//! files exist and name the ids.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Ids with a common prefix and a number with this many digits.
struct Series {
    prefix: &'static str,
    digits: usize,
    count: usize,
}

/// A page of tables, and the ids that they list, in order.
struct Page {
    file: &'static str,
    series: &'static [Series],
}

/// The requirements of each document, and the resolutions.
const REQUIREMENTS: Page = Page {
    file: "docs/requirements.md",
    series: &[
        Series::new("S000-", 2, 55),
        Series::new("S001-", 2, 82),
        Series::new("S002-", 2, 44),
        Series::new("S003-", 2, 61),
        Series::new("S004-", 2, 77),
        Series::new("C", 2, 58),
    ],
};

/// The checklist of document 004, the defects of two programs, and the traps.
const CHECKLIST: Page = Page {
    file: "docs/checklist.md",
    series: &[
        Series::new("S004-K", 3, 109),
        Series::new("S001-D", 2, 11),
        Series::new("S004-D", 2, 14),
        Series::new("TRAP-", 2, 40),
    ],
};

const PAGES: [Page; 2] = [REQUIREMENTS, CHECKLIST];

/// A row of a table of the page.
struct Row {
    id: String,
    words: String,
    place: String,
}

#[test]
fn every_id_is_listed_once_and_in_order() {
    for page in PAGES {
        let listed: Vec<_> = page.rows().into_iter().map(|row| row.id).collect();
        assert_eq!(listed, page.ids(), "{}", page.file);
    }
}

#[test]
fn every_row_has_a_text_and_tests() {
    let known = REQUIREMENTS.ids();
    for Row { id, words, place } in all_rows() {
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
fn test_files_name_their_ids() {
    let mut named_in = BTreeMap::new();
    let mut untrue = Vec::new();
    for Row { id, place, .. } in all_rows() {
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
fn ranges_include_the_ids_between() {
    let text = "//! (S002-06…08, S003-28), C05 to\n//! C07, S004-K009…010 and HDR26-05";
    let expected = [
        "S002-06",
        "S002-07",
        "S002-08",
        "S003-28",
        "C05",
        "C06",
        "C07",
        "S004-K009",
        "S004-K010",
    ];
    assert_eq!(ids(text), expected);
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn all_rows() -> impl Iterator<Item = Row> {
    PAGES.into_iter().flat_map(|page| page.rows())
}

impl Series {
    const fn new(prefix: &'static str, digits: usize, count: usize) -> Self {
        Self {
            prefix,
            digits,
            count,
        }
    }

    fn id(&self, number: usize) -> String {
        let Self { prefix, digits, .. } = self;
        format!("{prefix}{number:0digits$}")
    }

    /// `S002-14` is number 14 of `S002-`.
    fn number(&self, id: &str) -> Option<usize> {
        let number = id.strip_prefix(self.prefix)?;
        let fits = number.len() == self.digits;
        fits.then(|| number.parse().ok()).flatten()
    }
}

impl Page {
    fn ids(&self) -> Vec<String> {
        let ids = |series: &'static Series| (1..=series.count).map(|number| series.id(number));
        self.series.iter().flat_map(ids).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let text = fs::read_to_string(root().join(self.file)).unwrap();
        let rows = text.lines().filter_map(|line| {
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
}

/// The files that a cell names.
fn files(place: &str) -> Vec<&str> {
    let quoted = place.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.contains('/') && text.contains('.') && !text.starts_with('.'))
        .collect()
}

/// The ids that a text names, including those within a range.
fn ids(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '…';
    let mut words = text
        .split(|c| !is_part(c))
        .filter(|word| !word.is_empty())
        .peekable();
    let mut ids = Vec::new();
    while let Some(word) = words.next() {
        let (first, last) = word.split_once('…').unwrap_or((word, ""));
        let Some((series, first)) = parts(first) else {
            continue;
        };
        let mut last = last.parse().unwrap_or(first);
        if words.next_if_eq(&"to").is_some()
            && let Some((same, end)) = words.peek().and_then(|word| parts(word))
            && same.prefix == series.prefix
        {
            last = end;
            words.next();
        }
        ids.extend((first..=last).map(|number| series.id(number)));
    }
    ids
}

/// The series of an id, and its number.
fn parts(id: &str) -> Option<(&'static Series, usize)> {
    let mut series = PAGES.into_iter().flat_map(|page| page.series);
    series.find_map(|series| Some((series, series.number(id)?)))
}
