//! YAML, read as JSON.

use std::collections::HashMap;
use std::path::Path;

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use plexus_mcp_wire::Raw;

use super::rules::literal;
use crate::json;
use crate::problem::{ConfigProblem, Position};

/// The first document of the file as JSON. An empty file is `null`.
pub(super) fn parse(file: &Path, text: &str) -> Result<Raw, ConfigProblem> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let message = error
                .to_string()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let (line, column) = (error.marker().line(), error.marker().col() + 1);
            ConfigProblem::new(file, format!("not YAML: {message}")).at(Position::new(line, column))
        })?;
        if let Event::DocumentEnd = event {
            break;
        }
        builder.take(event).map_err(|what| {
            let position = Position::new(span.start.line(), span.start.col() + 1);
            ConfigProblem::new(file, what).at(position)
        })?;
    }
    let json = builder.root.unwrap_or_else(|| "null".to_owned());
    Raw::parse(json.into(), &json::LIMITS)
        .map_err(|error| ConfigProblem::new(file, error.to_string()))
}

/// Writes events as JSON.
#[derive(Default)]
struct Builder {
    root: Option<String>,
    /// The lists and mappings that have not ended.
    open: Vec<Collection>,
    /// The nodes with an anchor, to which an alias may refer.
    anchors: HashMap<usize, String>,
}

struct Collection {
    json: String,
    anchor: usize,
    is_mapping: bool,
    /// The key of a mapping whose value has not come yet.
    key: Option<String>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_key = self.open.last().is_some_and(Collection::expects_key);
                let is_text = style != ScalarStyle::Plain || tag.as_deref().is_some_and(is_string);
                let json = match plain(&text) {
                    Some(json) if !is_text && !is_key => json,
                    _ => literal(&*text).as_str().to_owned(),
                };
                self.node(json, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.start("[", anchor, false),
            Event::MappingStart(_, anchor, _) => self.start("{", anchor, true),
            Event::SequenceEnd => self.end("]"),
            Event::MappingEnd => self.end("}"),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(json) => self.node(json.clone(), 0),
                None => Err("an alias inside of the value that it refers to"),
            },
            _ => Ok(()),
        }
    }

    fn start(
        &mut self,
        bracket: &str,
        anchor: usize,
        is_mapping: bool,
    ) -> Result<(), &'static str> {
        if self.open.last().is_some_and(Collection::expects_key) {
            return Err("a key is not text");
        }
        if self.open.len() >= json::LIMITS.max_depth {
            return Err("the file nests too deeply");
        }
        self.open.push(Collection {
            json: bracket.to_owned(),
            anchor,
            is_mapping,
            key: None,
        });
        Ok(())
    }

    fn end(&mut self, bracket: &str) -> Result<(), &'static str> {
        match self.open.pop() {
            Some(ended) => self.node(ended.json + bracket, ended.anchor),
            None => Ok(()),
        }
    }

    /// Adds a value, or the key of one.
    fn node(&mut self, json: String, anchor: usize) -> Result<(), &'static str> {
        // Aliases can make a small file a large one.
        let size: usize = self.open.iter().map(|open| open.json.len()).sum();
        if size + json.len() > json::LIMITS.max_bytes {
            return Err("the file is too large with all its aliases");
        }
        if anchor != 0 {
            self.anchors.insert(anchor, json.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(json);
            return Ok(());
        };
        if open.expects_key() {
            if !json.starts_with('"') {
                return Err("a key is not text");
            }
            open.key = Some(json);
            return Ok(());
        }
        if open.json.len() > 1 {
            open.json.push(',');
        }
        if let Some(key) = open.key.take() {
            open.json.push_str(&key);
            open.json.push(':');
        }
        open.json.push_str(&json);
        Ok(())
    }
}

impl Collection {
    fn expects_key(&self) -> bool {
        self.is_mapping && self.key.is_none()
    }
}

fn is_string(tag: &Tag) -> bool {
    tag.is_yaml_core_schema_tag("str")
}

/// A plain scalar that is not text, by the core schema of YAML 1.2. JSON has neither infinity nor
/// NaN: they stay text.
fn plain(text: &str) -> Option<String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some("null".to_owned()),
        "true" | "True" | "TRUE" => return Some("true".to_owned()),
        "false" | "False" | "FALSE" => return Some("false".to_owned()),
        _ => {}
    }
    let based = |prefix, base| i64::from_str_radix(text.strip_prefix(prefix)?, base).ok();
    if let Some(number) = based("0x", 16).or_else(|| based("0o", 8)) {
        return Some(number.to_string());
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = digits.strip_prefix('.').unwrap_or(digits);
    let is_number = starts.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if !is_number {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_string());
    }
    let number: f64 = text.parse().ok()?;
    number
        .is_finite()
        .then(|| literal(&number).as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        parse(Path::new("x.yaml"), text)
            .unwrap()
            .as_str()
            .to_owned()
    }

    #[test]
    fn values_are_those_of_the_core_schema() {
        let cases = [
            ("", "null"),
            ("# only a comment\n", "null"),
            (
                "a: 1\nb: -2.50\nc: 0x1f\nd: 1e3",
                r#"{"a":1,"b":-2.5,"c":31,"d":1000.0}"#,
            ),
            (
                "[yes, no, on, true, False, ~, null, ]",
                r#"["yes","no","on",true,false,null,null]"#,
            ),
            (
                "[1.2.3, 1-2, ., .inf, 007, '7', !!str 7]",
                r#"["1.2.3","1-2",".",".inf",7,"7","7"]"#,
            ),
            ("1: x\ntrue: \"\\u00e9\"", "{\"1\":\"x\",\"true\":\"é\"}"),
            (
                "a: |\n  x\n  y\nb: >\n  x\n  y\n",
                r#"{"a":"x\ny\n","b":"x y\n"}"#,
            ),
            ("a: &x {k: [1]}\nb: *x", r#"{"a":{"k":[1]},"b":{"k":[1]}}"#),
            ("first: 1\n---\nsecond: 2\n", r#"{"first":1}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn faults_are_placed_and_bounded() {
        let problem = |text: &str| parse(Path::new("x.yaml"), text).unwrap_err().to_string();
        let shown = problem("a: 1\nb: [1, 2\n");
        assert!(shown.starts_with("x.yaml:2:4: not YAML: "), "{shown}");
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(problem("? [1]\n: x").contains("a key is not text"));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(problem(&deep).contains("nests"), "{}", problem(&deep));
        let mut laughs = vec!["a0: &a0 [x,x,x,x,x,x,x,x,x,x]".to_owned()];
        for level in 1..10 {
            let before = level - 1;
            let list = vec![format!("*a{before}"); 10].join(",");
            laughs.push(format!("a{level}: &a{level} [{list}]"));
        }
        let laughs = laughs.join("\n");
        assert!(
            problem(&laughs).contains("too large"),
            "{}",
            problem(&laughs)
        );
    }
}
