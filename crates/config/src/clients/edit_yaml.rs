//! Edits YAML in place. Comments, order and formatting of the rest stay.
//!
//! New entries come first in their collection, since the end of a collection in YAML is only known by
//! what follows.

use std::ops::Range;

use granit_parser::{Event, Parser};
use plexus_mcp_wire::Raw;

use super::writer::{UNEDITABLE, inline};
use crate::json;

/// Two spaces are the common indentation.
const INDENT: &str = "  ";

/// The name of an element in a list of servers.
const NAME: &str = "name";

/// A text that is valid YAML, and where its nodes are.
pub(super) struct YamlText<'a> {
    text: &'a str,
    /// `None` in an empty file.
    root: Option<Node>,
}

/// A value.
struct Node {
    span: Range<usize>,
    content: Content,
}

enum Content {
    Scalar(String),
    Mapping {
        is_flow: bool,
        members: Vec<(Node, Node)>,
    },
    Sequence {
        is_flow: bool,
        elements: Vec<Node>,
    },
}

impl<'a> YamlText<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let mut events = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|_invalid| UNEDITABLE)?;
            match event {
                Event::DocumentEnd => break,
                Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {
                    events.push((event, span.byte_range().ok_or(UNEDITABLE)?));
                }
                // The edit of a value would change another one.
                Event::Alias(_) => return Err(UNEDITABLE),
                _ => {}
            }
        }
        let mut events = events.into_iter();
        let root = node(text, &mut events);
        Ok(Self { text, root })
    }

    /// Adds a server to the mapping or list under `holder`, which is added as well if it is missing.
    pub(super) fn add(
        &self,
        holder: &str,
        name: &str,
        value: &Raw,
        is_list: bool,
    ) -> Result<String, &'static str> {
        let members = json::members(value).ok_or(UNEDITABLE)?;
        let entry = |indent: &str| entry(name, &members, indent, is_list);
        let flow = || {
            let value = inline(value);
            if is_list {
                value
            } else {
                format!("{}: {value}", Raw::string(name).as_str())
            }
        };
        self.insert(holder, &entry, flow)
    }

    /// Removes a server, and returns its text as well.
    pub(super) fn remove(
        &self,
        holder: &str,
        name: &str,
    ) -> Result<(String, String), &'static str> {
        let node = self.member(holder).ok_or(UNEDITABLE)?;
        let (entries, is_flow): (Vec<_>, _) = match &node.content {
            Content::Mapping { is_flow, members } => {
                let entries = members.iter().map(|(key, value)| (key.text(), key, value));
                (entries.collect(), *is_flow)
            }
            Content::Sequence { is_flow, elements } => {
                let entries = elements
                    .iter()
                    .map(|element| (element.name(), element, element));
                (entries.collect(), *is_flow)
            }
            Content::Scalar(_) => return Err(UNEDITABLE),
        };
        let mut found = entries.iter().enumerate();
        let found = found.find(|(_, (entry, ..))| *entry == Some(name));
        let (index, (_, first, last)) = found.ok_or(UNEDITABLE)?;
        if is_flow {
            // With the comma behind it. New entries come first, so that there is one.
            let (_, next, _) = entries.get(index + 1).ok_or(UNEDITABLE)?;
            let removed = self.part(first.span.start..last.span.end).to_owned();
            let rest = [self.part(0..first.span.start), self.rest(next.span.start)].concat();
            return Ok((rest, removed));
        }
        let start = self.line_start(first.span.start);
        let end = self.line_end(last.span.end);
        let removed = self.part(start..end).to_owned();
        let rest = if let [_] = entries.as_slice() {
            // Nothing at all would be null.
            let empty = if matches!(node.content, Content::Sequence { .. }) {
                "[]"
            } else {
                "{}"
            };
            let before = self.part(0..start).trim_end();
            if !before.ends_with(':') {
                return Err(UNEDITABLE);
            }
            format!("{before} {empty}\n{}", self.rest(end))
        } else {
            [self.part(0..start), self.rest(end)].concat()
        };
        Ok((rest, removed))
    }

    /// Adds an entry as it was written before it was removed.
    pub(super) fn restore(&self, holder: &str, written: &str) -> Result<String, &'static str> {
        let flow = || {
            let is_of_flow = !written.contains('\n');
            if is_of_flow { written } else { "" }.to_owned()
        };
        self.insert(holder, &|_| written.to_owned(), flow)
    }

    /// Sets a truth value of a server, or removes it. Returns its value before.
    pub(super) fn set(
        &self,
        holder: &str,
        server: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<(String, Option<bool>), &'static str> {
        let holder = self.member(holder).ok_or(UNEDITABLE)?;
        let server = holder.server(server).ok_or(UNEDITABLE)?;
        let Content::Mapping { is_flow, members } = &server.content else {
            return Err(UNEDITABLE);
        };
        let present = members.iter().find(|(name, _)| name.text() == Some(key));
        let before = match present.and_then(|(_, value)| value.text()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            None if present.is_none() => None,
            _ => return Err(UNEDITABLE),
        };
        let text = match (present, value) {
            (Some((_, present)), Some(value)) => {
                let (start, end) = (present.span.start, present.span.end);
                format!("{}{value}{}", self.part(0..start), self.rest(end))
            }
            (Some((name, present)), None) if !is_flow => {
                let start = self.line_start(name.span.start);
                let end = self.line_end(present.span.end);
                [self.part(0..start), self.rest(end)].concat()
            }
            (Some(_), None) => return Err(UNEDITABLE),
            (None, Some(value)) => {
                let (first, _) = members.first().ok_or(UNEDITABLE)?;
                let at = first.span.start;
                let separator = if *is_flow {
                    ", ".to_owned()
                } else {
                    format!("\n{}", " ".repeat(at - self.line_start(at)))
                };
                let (before, after) = (self.part(0..at), self.rest(at));
                format!("{before}{key}: {value}{separator}{after}")
            }
            (None, None) => self.text.to_owned(),
        };
        Ok((text, before))
    }

    /// Adds an entry, in lines of its own with this indentation or in a flow collection.
    fn insert(
        &self,
        holder: &str,
        lines: &dyn Fn(&str) -> String,
        flow: impl FnOnce() -> String,
    ) -> Result<String, &'static str> {
        let Some(node) = self.member(holder) else {
            let is_block = match &self.root {
                None => true,
                Some(root) => matches!(root.content, Content::Mapping { is_flow: false, .. }),
            };
            if !is_block || self.text.lines().any(|line| line.starts_with("...")) {
                return Err(UNEDITABLE);
            }
            let newline = if self.text.is_empty() || self.text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let lines = lines(INDENT);
            return Ok(format!("{}{newline}{holder}:\n{lines}", self.text));
        };
        let (is_flow, first) = match &node.content {
            Content::Mapping { is_flow, members } => {
                (*is_flow, members.first().map(|(key, _)| key))
            }
            Content::Sequence { is_flow, elements } => (*is_flow, elements.first()),
            Content::Scalar(_) => (true, None),
        };
        let Some(first) = first else {
            let key = self.root.as_ref().and_then(|root| root.key(holder));
            let end = key.ok_or(UNEDITABLE)?.span.end;
            let line_end = self.line_end(end);
            let value = self.part(end..line_end).trim().trim_start_matches(':');
            if !matches!(value.trim(), "" | "{}" | "[]" | "null" | "~") {
                return Err(UNEDITABLE);
            }
            let (before, after) = (self.part(0..end), self.rest(line_end));
            return Ok(format!("{before}:\n{}{after}", lines(INDENT)));
        };
        if is_flow {
            let at = node.span.start + 1;
            let flow = flow();
            if flow.is_empty() {
                return Err(UNEDITABLE);
            }
            return Ok(format!("{}{flow}, {}", self.part(0..at), self.rest(at)));
        }
        let line = self.line_start(first.span.start);
        let text = self.rest(line);
        let indent = text.len() - text.trim_start_matches(' ').len();
        let lines = lines(&" ".repeat(indent));
        Ok([self.part(0..line), &lines, text].concat())
    }

    fn member(&self, key: &str) -> Option<&Node> {
        self.root.as_ref()?.member(key)
    }

    fn line_start(&self, at: usize) -> usize {
        self.part(0..at)
            .rfind('\n')
            .map_or(0, |newline| newline + 1)
    }

    /// Behind the line break of the line in which a value ends. A block scalar ends behind it.
    fn line_end(&self, at: usize) -> usize {
        if at > 0 && self.part(at - 1..at) == "\n" {
            return at;
        }
        let rest = self.rest(at);
        at + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
    }

    fn part(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    fn rest(&self, start: usize) -> &'a str {
        self.text.get(start..).unwrap_or_default()
    }
}

impl Node {
    fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    fn member(&self, key: &str) -> Option<&Self> {
        let Content::Mapping { members, .. } = &self.content else {
            return None;
        };
        let mut members = members.iter();
        let (_, value) = members.find(|(name, _)| name.text() == Some(key))?;
        Some(value)
    }

    fn key(&self, key: &str) -> Option<&Self> {
        let Content::Mapping { members, .. } = &self.content else {
            return None;
        };
        let mut members = members.iter();
        let (name, _) = members.find(|(name, _)| name.text() == Some(key))?;
        Some(name)
    }

    fn name(&self) -> Option<&str> {
        self.member(NAME)?.text()
    }

    /// The server in a mapping or in a list.
    fn server(&self, name: &str) -> Option<&Self> {
        match &self.content {
            Content::Sequence { elements, .. } => {
                let mut elements = elements.iter();
                elements.find(|element| element.name() == Some(name))
            }
            _ => self.member(name),
        }
    }
}

/// The next node. A block collection ends with its last node.
fn node<'e>(
    text: &str,
    events: &mut impl Iterator<Item = (Event<'e>, Range<usize>)>,
) -> Option<Node> {
    let (event, span) = events.next()?;
    let is_flow = |bracket: &str| text.get(span.clone()).is_some_and(|part| part == bracket);
    let mut end = span.end;
    let content = match event {
        Event::Scalar(text, ..) => Content::Scalar(text.into_owned()),
        Event::MappingStart(..) => {
            let is_flow = is_flow("{");
            let mut members = Vec::new();
            while let Some(key) = node(text, events) {
                let value = node(text, events)?;
                end = value.span.end.max(key.span.end);
                members.push((key, value));
            }
            Content::Mapping { is_flow, members }
        }
        Event::SequenceStart(..) => {
            let is_flow = is_flow("[");
            let mut elements = Vec::new();
            while let Some(element) = node(text, events) {
                end = element.span.end;
                elements.push(element);
            }
            Content::Sequence { is_flow, elements }
        }
        _ => return None,
    };
    if let Content::Mapping { is_flow: true, .. } | Content::Sequence { is_flow: true, .. } =
        content
    {
        // The closing bracket follows the last node.
        let rest = text.get(end..)?;
        end += rest.find(['}', ']']).map_or(0, |bracket| bracket + 1);
    }
    let span = span.start..end;
    Some(Node { span, content })
}

/// The lines of a server.
fn entry(name: &str, members: &[(String, Raw)], indent: &str, is_list: bool) -> String {
    let mut lines = String::new();
    if !is_list {
        lines.extend([indent, name, ":\n"]);
    }
    for (index, (key, value)) in members.iter().enumerate() {
        let lead = match (is_list, index) {
            (true, 0) => "- ",
            _ => INDENT,
        };
        lines.extend([indent, lead, key.as_str(), ": ", &inline(value), "\n"]);
    }
    lines
}
