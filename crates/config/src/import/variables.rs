//! Variable references of other clients.

use std::collections::HashMap;

use plexus_mcp_wire::{Object, Raw};
use serde::Deserialize;

use super::{Client, member};
use crate::json;
use crate::text::is_name;

/// The members whose strings are expanded.
const EXPANDED: [&str; 7] = [
    "command", "args", "env", "url", "headers", "cwd", "env_file",
];

/// Translates variable references of other clients into `${NAME}`.
pub(super) struct Variables {
    client: Client,
    /// The input prompts of VS Code, by id.
    questions: HashMap<String, String>,
}

impl Variables {
    pub(super) fn new(client: Client, root: &Raw) -> Self {
        let inputs: Option<Vec<Input>> = member(root, "inputs").and_then(|raw| raw.decode().ok());
        let questions = inputs.unwrap_or_default().into_iter();
        Self {
            client,
            questions: questions
                .map(|input| (input.id, input.description))
                .collect(),
        }
    }

    pub(super) fn translate(&self, mut definition: Object, notes: &mut Vec<String>) -> Object {
        if matches!(
            self.client,
            Client::ClaudeCode | Client::ClaudeDesktop | Client::Codex
        ) {
            return definition;
        }
        for key in EXPANDED {
            if let Some(raw) = definition.get(key) {
                let raw = json::map_strings(raw, &mut |text| self.text(text, notes));
                definition.set(key, raw);
            }
        }
        definition
    }

    fn text(&self, text: &str, notes: &mut Vec<String>) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            translated.push_str(before);
            rest = after;
            if let Some((inside, behind)) = braced(after) {
                translated.push_str(&self.reference(inside, notes));
                rest = behind;
            } else if self.client == Client::Gemini
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
            if !notes.contains(&note) {
                notes.push(note);
            }
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
