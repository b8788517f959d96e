//! The search words of `docs/finding-your-way.md` lead to the files that it names.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A row of the table in `docs/finding-your-way.md`.
struct Row {
    search_word: String,
    file: String,
}

#[test]
fn every_search_word_leads_to_its_file() {
    let rows = rows();
    assert!(rows.len() >= 30, "the page has only {} rows", rows.len());
    let misleading: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            let found = files_with(&row.search_word);
            let first_five = found.get(..5).unwrap_or(&found);
            (!first_five.contains(&row.file)).then(|| {
                format!(
                    "`{}` should find {}, but finds {first_five:?}",
                    row.search_word, row.file
                )
            })
        })
        .collect();
    assert!(
        misleading.is_empty(),
        "docs/finding-your-way.md:\n{}",
        misleading.join("\n")
    );
}

fn rows() -> Vec<Row> {
    let page = std::fs::read_to_string(repository().join("docs/finding-your-way.md")).unwrap();
    page.lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let [_, _, word, file, _] = *cells else {
                return None;
            };
            Some(Row {
                search_word: code(word)?,
                file: code(file)?,
            })
        })
        .collect()
}

/// The text of a cell that consists of one code span.
fn code(cell: &str) -> Option<String> {
    Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())
}

/// The files below `crates/` that contain the word, in the order of `git grep`.
#[expect(
    clippy::disallowed_methods,
    reason = "the test waits for `git` to exit, so it leaves no process behind"
)]
fn files_with(word: &str) -> Vec<String> {
    let output = Command::new("git")
        .args(["grep", "-il", word, "--", "crates"])
        .current_dir(repository())
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
