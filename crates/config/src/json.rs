//! Parsing of hand-written JSON, with the position and reason of errors.

mod layout;

use std::fmt;

use bytes::Bytes;
use plexus_mcp_wire::{DecodeError, Limits, Raw};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::{ConfigProblem, Position};

pub(super) use self::layout::{compact, indented, map_strings};

/// Limits of a configuration file.
pub(super) const LIMITS: Limits = Limits {
    max_bytes: 16 * 1024 * 1024,
    max_depth: 100,
    max_batch: 1,
};

/// Parses the text of a file; [`super::disk`] has removed its byte order mark.
pub(super) fn parse(file: &std::path::Path, text: &str) -> Result<Raw, ConfigProblem> {
    if text.trim().is_empty() {
        return Err(ConfigProblem::new(file, "the file is empty")
            .at(Position::new(1, 1))
            .advice("write {\"mcpServers\": {}}, or remove it"));
    }
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    Raw::parse(bytes, &LIMITS).map_err(|error| match error {
        DecodeError::Syntax {
            line,
            column,
            message,
        } => {
            let problem = ConfigProblem::new(file, format!("not JSON: {message}"))
                .at(Position::new(line, column.max(1)));
            match hint(text, line, column) {
                Some(hint) => problem.advice(hint),
                None => problem,
            }
        }
        other => ConfigProblem::new(file, other.to_string()),
    })
}

/// The members of an object in order, including duplicates; `None` if it is not an object.
pub(super) fn members(raw: &Raw) -> Option<Vec<(String, Raw)>> {
    serde_json::Deserializer::from_str(raw.as_str())
        .deserialize_map(MembersOf(raw))
        .ok()
}

struct MembersOf<'a>(&'a Raw);

impl<'a> Visitor<'a> for MembersOf<'a> {
    type Value = Vec<(String, Raw)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            members.push((key, self.0.part(value)));
        }
        Ok(members)
    }
}

/// A hint about the probable mistake.
fn hint(text: &str, line: usize, column: usize) -> Option<&'static str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let rest = line.get(column.saturating_sub(1)..)?;
    if rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#') {
        return Some("JSON has no comments, remove it");
    }
    match rest.chars().next()? {
        '}' | ']' => Some("the last member of a list has no comma behind it"),
        '\'' => Some("JSON has only double quotes"),
        '“' | '”' => Some("these are typographic quotes, JSON has only \""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn problem(text: &str) -> String {
        parse(Path::new("x.json"), text).unwrap_err().to_string()
    }

    /// S001-60: file, line and column are named.
    #[test]
    fn a_fault_is_placed() {
        let shown = problem("{\n  \"a\": 1\n  \"b\": 2\n}");
        assert!(shown.starts_with("x.json:3:3: not JSON: "), "{shown}");
    }

    #[test]
    fn common_mistakes_are_named() {
        let cases = [
            ("{\n  // note\n  \"a\": 1}", "x.json:2:3", "no comments"),
            ("{\"a\": /* x */ 1}", "x.json:1:7", "no comments"),
            ("{\"a\": 1,}", "x.json:1:9", "no comma behind it"),
            ("{'a': 1}", "x.json:1:2", "double quotes"),
            ("", "x.json:1:1", "the file is empty"),
            (" \n", "x.json:1:1", "the file is empty"),
        ];
        for (text, place, words) in cases {
            let shown = problem(text);
            assert!(shown.starts_with(place), "{text}: {shown}");
            assert!(shown.contains(words), "{text}: {shown}");
            assert_eq!(shown.lines().count(), 1, "{shown}");
        }
    }

    #[test]
    fn a_half_written_file_is_a_fault_of_syntax() {
        let half = parse(Path::new("x.json"), "{\"mcpServers\": {\"a\": {\"comm");
        assert!(half.unwrap_err().is_about_syntax());
    }

    #[test]
    fn nesting_has_a_limit() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(problem(&deep).contains("nests deeper"));
    }

    #[test]
    fn members_keep_order_and_repetitions() {
        let raw = parse(Path::new("x"), r#"{"b":1,"\u0061":2,"b":[3]}"#).unwrap();
        let members = members(&raw).unwrap();
        let shown: Vec<_> = members
            .iter()
            .map(|(key, raw)| (key.as_str(), raw.as_str()))
            .collect();
        assert_eq!(shown, [("b", "1"), ("a", "2"), ("b", "[3]")]);
        assert!(super::members(&Raw::null()).is_none());
    }
}
