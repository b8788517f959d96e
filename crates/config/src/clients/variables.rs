//! Variable references of other clients.

use std::collections::HashMap;

use plexus_mcp_wire::{Object, Raw};
use serde::Deserialize;

use super::reader::member;
use super::rules::Translation;
use crate::json;
use crate::text::is_name;

/// The members whose strings are expanded.
const EXPANDED: [&str; 8] = [
    "command", "args", "env", "url", "headers", "cwd", "env_file", "oauth",
];

/// How a client writes references to variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// `${NAME}`, or none at all.
    Ours,
    /// `${env:NAME}`, `${input:ID}` and variables of the editor.
    Editor,
    /// `$NAME` and `${NAME}`.
    Shell,
    /// `{env:NAME}` and `{file:PATH}`.
    OpenCode,
    /// `${{ secrets.NAME }}`.
    Continue,
}

/// Translates variable references of other clients into `${NAME}`.
pub(super) struct Variables {
    notation: Notation,
    /// The input prompts of VS Code, by id.
    questions: HashMap<String, String>,
}

impl Variables {
    pub(super) fn new(notation: Notation, root: &Raw) -> Self {
        let inputs: Option<Vec<Input>> = member(root, "inputs").and_then(|raw| raw.decode().ok());
        let questions = inputs.unwrap_or_default().into_iter();
        Self {
            notation,
            questions: questions
                .map(|input| (input.id, input.description))
                .collect(),
        }
    }

    pub(super) fn translate(&self, server: &mut Translation) {
        if self.notation == Notation::Ours {
            return;
        }
        let Translation {
            definition, notes, ..
        } = server;
        for key in EXPANDED {
            if let Some(raw) = definition.get(key) {
                let raw = json::map_strings(raw, &mut |text| match self.notation {
                    Notation::OpenCode => in_braces(text, notes),
                    _ => self.text(text, notes),
                });
                definition.set(key, raw);
            }
        }
    }

    fn text(&self, text: &str, notes: &mut Vec<String>) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            translated.push_str(before);
            rest = after;
            if self.notation == Notation::Continue
                && let Some((name, behind)) = in_double_braces(after)
            {
                let note = format!("set the environment variable {name}: it is in Continue");
                add(notes, note);
                translated.extend(["${", name, "}"]);
                rest = behind;
            } else if let Some((inside, behind)) = braced(after) {
                translated.push_str(&self.reference(inside, notes));
                rest = behind;
            } else if self.notation == Notation::Shell
                && let Some((name, behind)) = bare_name(after)
            {
                translated.extend(["${", name, "}"]);
                rest = behind;
            } else {
                translated.push('$');
            }
        }
        translated.push_str(rest);
        translated
    }

    /// The translation of `${inside}`.
    fn reference(&self, inside: &str, notes: &mut Vec<String>) -> String {
        if let Some(name) = inside.strip_prefix("env:") {
            return format!("${{{name}}}");
        }
        if let Some(id) = inside.strip_prefix("input:") {
            let name = variable_name(id);
            let asked = self.questions.get(id).filter(|asked| !asked.is_empty());
            let note = match asked {
                Some(asked) => format!("set the environment variable {name}: {asked}"),
                None => format!("set the environment variable {name}"),
            };
            add(notes, note);
            return format!("${{{name}}}");
        }
        match inside {
            "userHome" => "${HOME}".to_owned(),
            "workspaceFolder" => "${PWD:-.}".to_owned(),
            "pathSeparator" | "/" => std::path::MAIN_SEPARATOR_STR.to_owned(),
            other => format!("${{{other}}}"),
        }
    }
}

#[derive(Deserialize)]
struct Input {
    id: String,
    #[serde(default)]
    description: String,
}

/// opencode: `{env:NAME}` and `{file:PATH}`, without a dollar sign.
fn in_braces(text: &str, notes: &mut Vec<String>) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        translated.push_str(before);
        rest = after;
        match after.split_once('}') {
            Some((inside, behind)) if inside.starts_with("env:") => {
                let name = inside.trim_start_matches("env:");
                translated.extend(["${", name, "}"]);
                rest = behind;
            }
            Some((inside, _)) if inside.starts_with("file:") => {
                add(
                    notes,
                    format!("put the content of {{{inside}}} in its place"),
                );
                translated.push('{');
            }
            _ => translated.push('{'),
        }
    }
    translated.push_str(rest);
    translated
}

/// Replaces references to `variables` by their values.
pub(super) fn with_values(raw: &Raw, variables: &Object) -> Raw {
    json::map_strings(raw, &mut |text| {
        let mut text = text.to_owned();
        for (name, value) in variables.iter() {
            if let Some(value) = value.text() {
                text = text.replace(&format!("${{{name}}}"), &value);
            }
        }
        text
    })
}

fn add(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

/// Continue: `{{ secrets.NAME }}`, or `inputs` instead of `secrets`.
fn in_double_braces(text: &str) -> Option<(&str, &str)> {
    let (inside, behind) = text.strip_prefix("{{")?.split_once("}}")?;
    let inside = inside.trim();
    let name = inside.strip_prefix("secrets.");
    let name = name.or_else(|| inside.strip_prefix("inputs."))?;
    is_name(name).then_some((name, behind))
}

fn braced(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.split_once('}')
}

/// The name that `text` begins with.
fn bare_name(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (name, behind) = text.split_at_checked(end)?;
    is_name(name).then_some((name, behind))
}

/// `api-key` as the name of a variable: `API_KEY`.
fn variable_name(id: &str) -> String {
    let name: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if is_name(&name) {
        name
    } else {
        format!("_{name}")
    }
}
