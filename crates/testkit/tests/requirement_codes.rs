//! Every requirement code in the sources is defined in a page of `docs/`.
//!
//! A code is defined by the first cell of a table row, and a section of `docs/translation.md` by its
//! heading or by the number of a list item below it. A mere mention does not count.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The families of codes: prefix, number of digits, and the page that defines them.
const FAMILIES: &[(&str, usize, &str)] = &[
    ("S000-", 2, "requirements.md"),
    ("S001-", 2, "requirements.md"),
    ("S002-", 2, "requirements.md"),
    ("S003-", 2, "requirements.md"),
    ("S004-", 2, "requirements.md"),
    ("C", 2, "requirements.md"),
    ("S001-D", 2, "checklist.md"),
    ("S004-D", 2, "checklist.md"),
    ("S004-K", 3, "checklist.md"),
    ("TRAP-", 2, "checklist.md"),
    ("APPS-", 2, "protocol-rules.md"),
    ("AUTH03-", 2, "protocol-rules.md"),
    ("AUTH06-", 2, "protocol-rules.md"),
    ("AUTH11-", 2, "protocol-rules.md"),
    ("AUTH26-", 2, "protocol-rules.md"),
    ("BASE-", 2, "protocol-rules.md"),
    ("CACHE26-", 2, "protocol-rules.md"),
    ("CAN-", 2, "protocol-rules.md"),
    ("CC-", 2, "protocol-rules.md"),
    ("COMP-", 2, "protocol-rules.md"),
    ("ELIC-", 2, "protocol-rules.md"),
    ("EMA-", 2, "protocol-rules.md"),
    ("ERR26-", 2, "protocol-rules.md"),
    ("EXT-", 2, "protocol-rules.md"),
    ("HDR26-", 2, "protocol-rules.md"),
    ("HTTP26-", 2, "protocol-rules.md"),
    ("HTTPL-", 2, "protocol-rules.md"),
    ("HTTPLC-", 2, "protocol-rules.md"),
    ("ICON-", 2, "protocol-rules.md"),
    ("JS-", 2, "protocol-rules.md"),
    ("LIFE-", 2, "protocol-rules.md"),
    ("LOG-", 2, "protocol-rules.md"),
    ("META26-", 2, "protocol-rules.md"),
    ("MRTR26-", 2, "protocol-rules.md"),
    ("PAGE-", 2, "protocol-rules.md"),
    ("PING-", 2, "protocol-rules.md"),
    ("PRM-", 2, "protocol-rules.md"),
    ("PROG-", 2, "protocol-rules.md"),
    ("RES-", 2, "protocol-rules.md"),
    ("ROOT-", 2, "protocol-rules.md"),
    ("SAMP-", 2, "protocol-rules.md"),
    ("SEC-", 2, "protocol-rules.md"),
    ("SSE24-", 2, "protocol-rules.md"),
    ("STDIO-", 2, "protocol-rules.md"),
    ("SUB26-", 2, "protocol-rules.md"),
    ("SUBL-", 2, "protocol-rules.md"),
    ("TASK25-", 2, "protocol-rules.md"),
    ("TASKX-", 2, "protocol-rules.md"),
    ("TOOL-", 2, "protocol-rules.md"),
    ("VER26-", 2, "protocol-rules.md"),
];

/// Prefixes of words that look like requirement codes, but are not.
const NOT_CODES: &[&str] = &["SHA-", "UTF-", "FNV-"];

/// The page whose sections are cited as `TRANSLATION §5.4.3`.
const TRANSLATION_PAGE: &str = "translation.md";

/// The minimum number of distinct codes that must be found; fewer mean that the search is broken.
const MIN_CODES: usize = 150;

const SOURCE_DIRECTORIES: &[&str] = &["bench", "conformance", "crates", "docs", "fuzz", "peers"];
const SOURCE_EXTENSIONS: &[&str] = &["js", "md", "mjs", "py", "rs", "sh", "toml", "ts", "yml"];
const SKIPPED_DIRECTORIES: &[&str] = &["node_modules", "target"];

#[test]
fn every_code_in_the_sources_is_defined_in_docs() {
    let mut files = Vec::new();
    for directory in SOURCE_DIRECTORIES {
        source_files(&root().join(directory), &mut files);
    }
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    let mut definitions = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut undefined = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for (number, line) in with_wrapped_lines_joined(&text) {
            for (code, page) in citations(&line) {
                let is_defined = page.is_some_and(|page| {
                    let defined = definitions
                        .entry(page)
                        .or_insert_with(|| definitions_of(page));
                    defined.contains(&code)
                });
                if !is_defined {
                    let file = file.strip_prefix(root()).unwrap_or(&file).display();
                    let page = page.unwrap_or("any page: unknown family or number of digits");
                    undefined.push(format!("{code}: {file}:{number}: not in {page}"));
                }
                seen.insert(code);
            }
        }
    }
    assert!(undefined.is_empty(), "{}", undefined.join("\n"));
    assert!(seen.len() >= MIN_CODES, "only {} codes found", seen.len());
}

#[test]
fn citations_are_found_in_a_line() {
    let line =
        "/// S002-06…08, C05 (TRANSLATION §5.4.3, §12.1), RFC 6749 §6, SHA-256, TRAP-9, NEW-01.";
    let expected = [
        ("S002-06", Some("requirements.md")),
        ("S002-08", Some("requirements.md")),
        ("C05", Some("requirements.md")),
        ("TRAP-9", None),
        ("NEW-01", None),
        ("§5.4.3", Some(TRANSLATION_PAGE)),
        ("§12.1", Some(TRANSLATION_PAGE)),
    ];
    let found = citations(line);
    let found: Vec<_> = found.iter().map(|(code, page)| (&**code, *page)).collect();
    assert_eq!(found, expected);
}

/// A comment that is wrapped between the name of the page and a section cites that section.
#[test]
fn citations_are_found_across_wrapped_comment_lines() {
    let text = "    // The rule (TRANSLATION\n    // §5.4.3) and\ncode();\n/// §1\n# §2\n# §3\n";
    let joined: Vec<_> = with_wrapped_lines_joined(text).collect();
    let expected = [
        (1, "    // The rule (TRANSLATION §5.4.3) and".to_owned()),
        (3, "code();".to_owned()),
        (4, "/// §1".to_owned()),
        (5, "# §2 §3".to_owned()),
    ];
    assert_eq!(joined, expected);
    let found: Vec<_> = joined
        .iter()
        .flat_map(|(_, line)| citations(line))
        .collect();
    assert_eq!(found, [("§5.4.3".to_owned(), Some(TRANSLATION_PAGE))]);
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Adds the source files below `directory`: those with a known extension, and scripts without any.
fn source_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !SKIPPED_DIRECTORIES.contains(&&*name) && !name.starts_with('.') {
                source_files(&path, files);
            }
        } else {
            let extension = path
                .extension()
                .map(|extension| extension.to_string_lossy());
            let is_source = extension.is_none_or(|known| SOURCE_EXTENSIONS.contains(&&*known));
            if is_source && !name.starts_with('.') && !path.ends_with(file!()) {
                files.push(path);
            }
        }
    }
}

/// The lines of a file with their numbers, with successive comment lines of the same kind joined.
fn with_wrapped_lines_joined(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut joined: Vec<(usize, &str, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (marker, rest) = comment(line);
        match joined.last_mut() {
            Some((_, before, lines)) if *before == marker && !marker.is_empty() => {
                lines.push(' ');
                lines.push_str(rest);
            }
            _ => joined.push((index + 1, marker, line.to_owned())),
        }
    }
    joined.into_iter().map(|(number, _, line)| (number, line))
}

/// The comment marker with which a line begins, if any, and the text after it.
fn comment(line: &str) -> (&str, &str) {
    let trimmed = line.trim_start();
    let markers = ["///", "//!", "//", "# "].into_iter();
    for marker in markers {
        if let Some(rest) = trimmed.strip_prefix(marker) {
            return (marker, rest.trim());
        }
    }
    ("", trimmed)
}

/// The codes and sections that a line cites, each with the page that must define it. An unknown family
/// has no page.
fn citations(line: &str) -> Vec<(String, Option<&'static str>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '…');
    let mut found = Vec::new();
    let words = line.split(|c| !is_part(c));
    for word in words.filter(|word| word.contains(|c: char| c.is_ascii_digit())) {
        let (first, last) = word.split_once('…').unwrap_or((word, ""));
        let family = FAMILIES.iter().find(|(prefix, digits, _)| {
            first
                .strip_prefix(prefix)
                .is_some_and(|number| is_number(number, *digits))
        });
        if let Some((prefix, digits, page)) = family {
            found.push((first.to_owned(), Some(*page)));
            if is_number(last, *digits) {
                found.push((format!("{prefix}{last}"), Some(*page)));
            }
        } else if looks_like_code(first) || has_known_prefix(first) {
            found.push((first.to_owned(), None));
        }
    }
    let sections = line.split_once("TRANSLATION").map_or("", |(_, rest)| rest);
    let mut before = "";
    for part in sections.split_inclusive('§') {
        let (number, rest) = section_number(part);
        if before.ends_with('§') && !is_other_document(before) && !number.is_empty() {
            found.push((format!("§{number}"), Some(TRANSLATION_PAGE)));
        }
        before = rest;
    }
    found
}

fn is_number(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Two or more capitals, perhaps digits, a hyphen, and two or three digits.
fn looks_like_code(word: &str) -> bool {
    let Some((family, number)) = word.split_once('-') else {
        return false;
    };
    let capitals = family.bytes().take_while(u8::is_ascii_uppercase).count();
    let is_family = capitals >= 2
        && family
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let is_code = is_family && (is_number(number, 2) || is_number(number, 3));
    is_code && !NOT_CODES.iter().any(|prefix| word.starts_with(prefix))
}

/// Whether a word is a known prefix with a hyphen and a number of any length.
fn has_known_prefix(word: &str) -> bool {
    let mut prefixes = FAMILIES.iter().map(|(prefix, ..)| *prefix);
    prefixes.any(|prefix| {
        let number = word.strip_prefix(prefix).unwrap_or_default();
        prefix.contains('-') && is_number(number, number.len()) && !number.is_empty()
    })
}

/// Whether the text before a `§` names a document other than the page on translation.
fn is_other_document(before: &str) -> bool {
    let mut words = before.trim_end_matches(['§', ' ']).rsplit(' ');
    let last = words.next().unwrap_or_default();
    last.bytes().any(|byte| byte.is_ascii_digit()) && words.next() == Some("RFC")
}

/// Splits the number of a section, such as `5.4.3`, from what follows it.
fn section_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number.trim_end_matches('.'), rest)
}

/// The codes that rows of the page define, and the sections that its headings and lists define.
fn definitions_of(page: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let mut defined = BTreeSet::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(row) = line.strip_prefix("| ") {
            defined.extend(row.split(" | ").next().map(str::to_owned));
        } else if line.starts_with('#') {
            let heading = line.split_once('§').map_or("", |(_, heading)| heading);
            section_number(heading).0.clone_into(&mut section);
            if !section.is_empty() {
                defined.insert(format!("§{section}"));
            }
        } else if let Some((item, _)) = line.split_once(". ")
            && (is_number(item, 1) || is_number(item, 2))
            && !section.is_empty()
        {
            defined.insert(format!("§{section}.{item}"));
        }
    }
    defined
}
