//! Edits JSON in place. Comments, order and formatting of the rest stay.

use std::ops::Range;

use plexus_mcp_wire::Raw;

use super::jsonc;
use super::writer::{UNEDITABLE, inline};
use crate::json;

/// The indentation of a file that has none.
const DEFAULT_INDENT: &str = "  ";

/// A text that is valid JSON apart from comments and trailing commas, and where its values are.
pub(super) struct JsonText<'a> {
    text: &'a str,
    root: Node,
}

/// A value.
struct Node {
    span: Range<usize>,
    /// The members of an object or the elements of an array.
    items: Vec<Item>,
}

/// A member of an object, or an element of an array.
struct Item {
    /// `None` for an element.
    key: Option<String>,
    /// Where its key starts, or the element.
    start: usize,
    value: Node,
}

impl<'a> JsonText<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let plain = jsonc::to_json(text);
        let mut scanner = Scanner {
            text: &plain,
            at: 0,
        };
        let root = scanner.value().ok_or(UNEDITABLE)?;
        Ok(Self { text, root })
    }

    /// Adds a member to the object under `holder`, which is added as well if it is missing.
    pub(super) fn add(&self, holder: &str, key: &str, value: &Raw) -> Result<String, &'static str> {
        let holder_node = self.holder(holder);
        match holder_node {
            Some(node) if self.is_object(node) => {
                Ok(self.insert(node, |indent| self.member(key, &self.pretty(value, indent))))
            }
            Some(node) if self.part(node.span.clone()) == "null" => {
                let indent = self.line_indent(node.span.start);
                let object = self.object_of(key, value, Some(indent));
                Ok(self.replaced(&node.span, &object))
            }
            Some(_) => Err(UNEDITABLE),
            None => Ok(self.insert(&self.root, |indent| {
                self.member(holder, &self.object_of(key, value, indent))
            })),
        }
    }

    /// Removes a member, and returns its text as well.
    pub(super) fn remove(&self, holder: &str, key: &str) -> Result<(String, String), &'static str> {
        let node = self.holder(holder).ok_or(UNEDITABLE)?;
        let (index, item) = find(node, key).ok_or(UNEDITABLE)?;
        let removed = self.part(item.start..item.value.span.end).to_owned();
        Ok((self.without(node, index)?, removed))
    }

    /// Adds a member as it was written before it was removed.
    pub(super) fn restore(&self, holder: &str, member: &str) -> Result<String, &'static str> {
        match self.holder(holder) {
            Some(node) if self.is_object(node) => Ok(self.insert(node, |_| member.to_owned())),
            Some(_) => Err(UNEDITABLE),
            None => Ok(self.insert(&self.root, |indent| {
                self.member(holder, &self.braced(member, indent))
            })),
        }
    }

    /// Sets a truth value of a server, or removes it. Returns its value before.
    pub(super) fn set(
        &self,
        holder: &str,
        server: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<(String, Option<bool>), &'static str> {
        let holder = self.holder(holder).ok_or(UNEDITABLE)?;
        let (_, server) = find(holder, server).ok_or(UNEDITABLE)?;
        let server = &server.value;
        if !self.is_object(server) {
            return Err(UNEDITABLE);
        }
        match (find(server, key), value) {
            (Some((index, item)), value) => {
                let before = match self.part(item.value.span.clone()) {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => return Err(UNEDITABLE),
                };
                let text = match value {
                    Some(value) => {
                        self.replaced(&item.value.span, if value { "true" } else { "false" })
                    }
                    None => self.without(server, index)?,
                };
                Ok((text, before))
            }
            (None, Some(value)) => {
                let text = self.insert(server, |_| self.member(key, &value.to_string()));
                Ok((text, None))
            }
            (None, None) => Ok((self.text.to_owned(), None)),
        }
    }

    /// Adds a string to the array under two keys. `None` if there is no such array, or it has the
    /// string.
    pub(super) fn push(&self, keys: [&str; 2], text: &str) -> Option<String> {
        let array = self.array(keys)?;
        let has_it = self.position(array, text).is_some();
        (!has_it).then(|| self.insert(array, |_| Raw::string(text).as_str().to_owned()))
    }

    /// Removes a string from the array under two keys, if it is there.
    pub(super) fn pull(&self, keys: [&str; 2], text: &str) -> Option<String> {
        let array = self.array(keys)?;
        self.without(array, self.position(array, text)?).ok()
    }

    fn array(&self, [outer, inner]: [&str; 2]) -> Option<&Node> {
        let outer = self.holder(outer)?;
        let (_, inner) = find(outer, inner)?;
        let is_array = self.part(inner.value.span.clone()).starts_with('[');
        is_array.then_some(&inner.value)
    }

    fn position(&self, array: &Node, text: &str) -> Option<usize> {
        array.items.iter().position(|item| {
            let element = self.part(item.value.span.clone());
            serde_json::from_str::<String>(element).is_ok_and(|element| element == text)
        })
    }

    fn holder(&self, key: &str) -> Option<&Node> {
        find(&self.root, key).map(|(_, item)| &item.value)
    }

    fn is_object(&self, node: &Node) -> bool {
        self.part(node.span.clone()).starts_with('{')
    }

    /// Adds an item behind all others. `item` gets the indentation of its line, if it has a line of
    /// its own.
    fn insert(&self, node: &Node, item: impl FnOnce(Option<&str>) -> String) -> String {
        let close = node.span.end.saturating_sub(1);
        // Behind all comments.
        let content = self.part(0..close).trim_end().len();
        let (Some(first), Some(last)) = (node.items.first(), node.items.last()) else {
            let at = content.max(node.span.start + 1);
            if self.is_one_line() || !self.is_object(node) {
                return [self.part(0..at), &item(None), self.rest(close)].concat();
            }
            let outer = self.line_indent(node.span.start);
            let inner = format!("{outer}{}", self.unit());
            let item = item(Some(&inner));
            let (before, after) = (self.part(0..at), self.rest(close));
            return format!("{before}\n{inner}{item}\n{outer}{after}");
        };
        let end = last.value.span.end;
        let has_trailing = self.comma(end..close).is_some();
        let has_lines = self.part(node.span.start..first.start).contains('\n');
        let at = content.max(end);
        let indent = self.line_indent(if has_lines {
            first.start
        } else {
            node.span.start
        });
        let separator = if has_lines {
            format!("\n{indent}")
        } else if self.part(at..close).contains('\n') {
            format!("\n{indent}{}", self.unit())
        } else {
            " ".to_owned()
        };
        let (comma, trailing) = if has_trailing { ("", ",") } else { (",", "") };
        let parts = [
            self.part(0..end),
            comma,
            self.part(end..at),
            &separator,
            &item(has_lines.then_some(indent)),
            trailing,
            self.rest(at),
        ];
        parts.concat()
    }

    /// The text without an item, its comma, and the line that would be empty.
    fn without(&self, node: &Node, index: usize) -> Result<String, &'static str> {
        let close = node.span.end.saturating_sub(1);
        let item = node.items.get(index).ok_or(UNEDITABLE)?;
        let end = item.value.span.end;
        let next = node.items.get(index + 1).map_or(close, |next| next.start);
        let comma = self.comma(end..next);
        let before = index.checked_sub(1).and_then(|index| node.items.get(index));
        // Where the comma in front is, if it has to go.
        let comma_before = match (comma, before) {
            (None, Some(before)) => Some(
                self.comma(before.value.span.end..item.start)
                    .ok_or(UNEDITABLE)?,
            ),
            _ => None,
        };
        let mut start = item.start;
        let mut end = comma.map_or(end, |comma| comma + 1);
        let line = self.line_start(start);
        let line_end = self.text.get(end..).and_then(|rest| rest.find('\n'));
        let line_end = line_end.map_or(self.text.len(), |length| end + length);
        let is_first_on_line = self.part(line..start).trim().is_empty();
        if is_first_on_line && self.part(end..line_end).trim().is_empty() && line > 0 {
            start = line;
            end = (line_end + 1).min(self.text.len());
        } else if comma.is_some() {
            let rest = self.part(end..line_end);
            end += rest.len() - rest.trim_start().len();
        } else if let Some(comma) = comma_before
            && self.part(comma + 1..start).trim().is_empty()
        {
            start = comma + 1;
        }
        let front = match comma_before {
            Some(comma) => [self.part(0..comma), self.part(comma + 1..start)].concat(),
            None => self.part(0..start).to_owned(),
        };
        Ok(front + self.rest(end))
    }

    /// The first comma in a range, outside of comments.
    fn comma(&self, range: Range<usize>) -> Option<usize> {
        let start = range.start;
        let between = jsonc::without_comments(self.part(range));
        between.find(',').map(|at| start + at)
    }

    fn replaced(&self, span: &Range<usize>, with: &str) -> String {
        [self.part(0..span.start), with, self.rest(span.end)].concat()
    }

    fn member(&self, key: &str, value: &str) -> String {
        let colon = if self.has_spaces() { ": " } else { ":" };
        format!("{}{colon}{value}", Raw::string(key).as_str())
    }

    /// An object with one member. `indent` is that of its line, unless it is to have only one line.
    fn object_of(&self, key: &str, value: &Raw, indent: Option<&str>) -> String {
        let inner = indent.map(|indent| format!("{indent}{}", self.unit()));
        let member = self.member(key, &self.pretty(value, inner.as_deref()));
        self.braced(&member, indent)
    }

    fn braced(&self, member: &str, indent: Option<&str>) -> String {
        match indent {
            Some(indent) => format!("{{\n{indent}{}{member}\n{indent}}}", self.unit()),
            None => format!("{{{member}}}"),
        }
    }

    /// A value with one member on each line, or on one line.
    fn pretty(&self, value: &Raw, indent: Option<&str>) -> String {
        let (Some(indent), Some(members)) = (indent, json::members(value)) else {
            return inline(value);
        };
        let inner = format!("{indent}{}", self.unit());
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| format!("{inner}{}", self.member(key, &inline(value))))
            .collect();
        format!("{{\n{}\n{indent}}}", members.join(",\n"))
    }

    fn is_one_line(&self) -> bool {
        !self.root.items.is_empty() && !self.part(self.root.span.clone()).contains('\n')
    }

    fn has_spaces(&self) -> bool {
        !self.is_one_line() || self.text.contains("\": ")
    }

    /// One level of indentation.
    fn unit(&self) -> &'a str {
        let first = self.root.items.first();
        let indent = first.map_or("", |first| self.line_indent(first.start));
        if indent.is_empty() {
            DEFAULT_INDENT
        } else {
            indent
        }
    }

    /// The white space that the line with this position begins with.
    fn line_indent(&self, at: usize) -> &'a str {
        let line = self.text.get(self.line_start(at)..).unwrap_or_default();
        let length = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..length).unwrap_or_default()
    }

    fn line_start(&self, at: usize) -> usize {
        self.part(0..at)
            .rfind('\n')
            .map_or(0, |newline| newline + 1)
    }

    fn part(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    fn rest(&self, start: usize) -> &'a str {
        self.text.get(start..).unwrap_or_default()
    }
}

/// The first member `key`, and its position.
fn find<'n>(node: &'n Node, key: &str) -> Option<(usize, &'n Item)> {
    let mut items = node.items.iter().enumerate();
    items.find(|(_, item)| item.key.as_deref() == Some(key))
}

/// Finds the values in JSON without comments, which was parsed before.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn value(&mut self) -> Option<Node> {
        let first = self.next_byte()?;
        let start = self.at;
        let items = match first {
            b'{' => self.items(b'}')?,
            b'[' => self.items(b']')?,
            b'"' => {
                self.at += jsonc::string_length(self.text.get(self.at..)?);
                Vec::new()
            }
            _ => {
                let rest = self.text.get(self.at..)?;
                let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']');
                self.at += rest.find(is_end).unwrap_or(rest.len());
                Vec::new()
            }
        };
        let span = start..self.at;
        Some(Node { span, items })
    }

    fn items(&mut self, close: u8) -> Option<Vec<Item>> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            match self.next_byte()? {
                b',' => self.at += 1,
                byte if byte == close => {
                    self.at += 1;
                    return Some(items);
                }
                _ => {}
            }
            if self.next_byte()? == close {
                self.at += 1;
                return Some(items);
            }
            let start = self.at;
            let mut key = None;
            if close == b'}' {
                let written = self.value()?;
                key = Some(serde_json::from_str(self.text.get(written.span)?).ok()?);
                (self.next_byte()? == b':').then_some(())?;
                self.at += 1;
            }
            let value = self.value()?;
            items.push(Item { key, start, value });
        }
    }

    /// Skips white space.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> String {
        let value = Raw::from_static(r#"{"command":"x","args":["a","b"]}"#);
        JsonText::parse(text)
            .unwrap()
            .add("s", "p", &value)
            .unwrap()
    }

    fn removed(text: &str, key: &str) -> String {
        JsonText::parse(text).unwrap().remove("s", key).unwrap().0
    }

    #[test]
    fn members_are_added_in_the_style_of_the_file() {
        let entry = "{\n    \"command\": \"x\",\n    \"args\": [\"a\", \"b\"]\n  }";
        let nested = entry.replace('\n', "\n  ");
        let cases = [
            (
                "{}\n".to_owned(),
                format!("{{\n  \"s\": {{\n    \"p\": {nested}\n  }}\n}}\n"),
            ),
            (
                "{\n  \"s\": {}\n}".to_owned(),
                format!("{{\n  \"s\": {{\n    \"p\": {nested}\n  }}\n}}"),
            ),
            (
                "{\n  \"s\": null // none\n}".to_owned(),
                format!("{{\n  \"s\": {{\n    \"p\": {nested}\n  }} // none\n}}"),
            ),
            (
                "{\n  \"s\": {\n    \"a\": 1 // one, two\n  }\n}".to_owned(),
                format!(
                    "{{\n  \"s\": {{\n    \"a\": 1, // one, two\n    \"p\": {nested}\n  }}\n}}"
                ),
            ),
            (
                "{\n  \"s\": {\n    \"a\": 1, /* x */\n  },\n}".to_owned(),
                format!("{{\n  \"s\": {{\n    \"a\": 1, /* x */\n    \"p\": {nested},\n  }},\n}}"),
            ),
            (
                r#"{"s":{"a":1},"b":2}"#.to_owned(),
                r#"{"s":{"a":1, "p":{ "command": "x", "args": ["a", "b"] }},"b":2}"#.to_owned(),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(added(&text), expected, "{text}");
        }
    }

    #[test]
    fn members_are_removed_with_their_lines() {
        let cases = [
            (
                "{\n \"s\": {\n  \"a\": 1,\n  \"b\": 2\n }\n}",
                "a",
                "{\n \"s\": {\n  \"b\": 2\n }\n}",
            ),
            (
                "{\n \"s\": {\n  \"a\": 1,\n  \"b\": 2\n }\n}",
                "b",
                "{\n \"s\": {\n  \"a\": 1\n }\n}",
            ),
            (
                "{\n \"s\": {\n  \"a\": 1, // x\n  \"b\": 2,\n }\n}",
                "b",
                "{\n \"s\": {\n  \"a\": 1, // x\n }\n}",
            ),
            (
                "{\n \"s\": {\n  \"a\": 1, // x\n  \"b\": 2\n }\n}",
                "b",
                "{\n \"s\": {\n  \"a\": 1 // x\n }\n}",
            ),
            (
                r#"{"s": {"a": 1, "b": 2, "c": 3}}"#,
                "a",
                r#"{"s": {"b": 2, "c": 3}}"#,
            ),
            (
                r#"{"s": {"a": 1, "b": 2, "c": 3}}"#,
                "c",
                r#"{"s": {"a": 1, "b": 2}}"#,
            ),
            (
                r#"{"s": {"a": "},{", "b": 2}}"#,
                "b",
                r#"{"s": {"a": "},{"}}"#,
            ),
            (r#"{"s": { "a": 1 }}"#, "a", r#"{"s": {  }}"#),
        ];
        for (text, key, expected) in cases {
            assert_eq!(removed(text, key), expected, "{text}");
        }
    }

    #[test]
    fn strings_are_added_to_arrays_and_removed() {
        let text = r#"{"mcp": {"allowed": ["a"]}}"#;
        let push = |text: &str| JsonText::parse(text).unwrap().push(["mcp", "allowed"], "p");
        let pull = |text: &str| JsonText::parse(text).unwrap().pull(["mcp", "allowed"], "p");
        let pushed = push(text).unwrap();
        assert_eq!(pushed, r#"{"mcp": {"allowed": ["a", "p"]}}"#);
        assert_eq!(push(&pushed), None);
        assert_eq!(pull(&pushed).unwrap(), text);
        assert_eq!(
            push(r#"{"mcp": {"allowed": []}}"#).unwrap(),
            r#"{"mcp": {"allowed": ["p"]}}"#
        );
        assert_eq!(push(r#"{"mcp": {}}"#), None);
    }
}
