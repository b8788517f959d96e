//! Translation of the keys of other clients.

use plexus_mcp_wire::{Kind, Object, Raw};

use super::Client;

/// How the members of a definition are translated. Others are kept.
pub(super) struct Rules {
    /// Members that only have another name.
    renamed: &'static [(&'static str, &'static str)],
    /// A translation that renaming is not enough for.
    special: Special,
}

/// Translates a definition, and adds notes for the user.
type Special = fn(Object, &mut Vec<String>) -> Object;

impl Rules {
    pub(super) fn of(client: Client) -> Self {
        let (renamed, special): (&[_], Special) = match client {
            Client::ClaudeCode | Client::ClaudeDesktop => (&[], as_it_is),
            Client::Cursor | Client::VsCode => (&[("envFile", "env_file")], as_it_is),
            Client::Codex => (
                &[
                    ("http_headers", "headers"),
                    ("enabled_tools", "allow"),
                    ("disabled_tools", "deny"),
                ],
                codex,
            ),
            Client::Gemini => (
                &[
                    ("timeout", "timeout_ms"),
                    ("includeTools", "allow"),
                    ("excludeTools", "deny"),
                ],
                gemini,
            ),
            Client::Windsurf => (&[("serverUrl", "url"), ("disabledTools", "deny")], as_it_is),
        };
        Self { renamed, special }
    }

    pub(super) fn apply(&self, definition: &Object, notes: &mut Vec<String>) -> Object {
        let mut renamed = Object::new();
        for (key, value) in definition.iter() {
            let new = self.renamed.iter().find(|(old, _)| *old == key);
            // A member that already has our name is not overwritten.
            let key = match new {
                Some((_, new)) if !definition.contains(new) => new,
                _ => key,
            };
            renamed.set(key.to_owned(), value.clone());
        }
        (self.special)(renamed, notes)
    }
}

fn as_it_is(definition: Object, _: &mut Vec<String>) -> Object {
    definition
}

/// Gemini has one member for each kind of URL.
fn gemini(mut definition: Object, notes: &mut Vec<String>) -> Object {
    if let Some(url) = definition.remove("httpUrl") {
        if definition.set("url", url).is_some() {
            notes.push("its second address, for HTTP+SSE, is left out".to_owned());
        }
        set_type(&mut definition, "http");
    } else if definition.contains("url") {
        set_type(&mut definition, "sse");
    }
    definition
}

/// Codex has the names of the variables that hold secrets.
fn codex(mut definition: Object, _: &mut Vec<String>) -> Object {
    let mut headers = definition
        .get("headers")
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    if let Some(variables) = definition.get("env_http_headers")
        && let Ok(variables) = Object::parse(variables)
    {
        for (header, variable) in variables.iter() {
            set_reference(&mut headers, header, "", variable);
        }
        definition.remove("env_http_headers");
    }
    if let Some(variable) = definition.get("bearer_token_env_var")
        && variable.kind() == Kind::String
    {
        set_reference(&mut headers, "Authorization", "Bearer ", variable);
        definition.remove("bearer_token_env_var");
    }
    if !headers.is_empty() {
        definition.set("headers", headers.to_raw());
    }
    match definition.get("enabled").map(Raw::as_str) {
        Some("false") => {
            definition.remove("enabled");
            definition.set("disabled", literal(&true));
        }
        Some("true") => {
            definition.remove("enabled");
        }
        _ => {}
    }
    if let Some(seconds) = definition.get("tool_timeout_sec")
        && let Ok(seconds) = seconds.decode::<f64>()
        && let Ok(timeout) = std::time::Duration::try_from_secs_f64(seconds)
    {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        definition.remove("tool_timeout_sec");
        definition.set("timeout_ms", literal(&millis));
    }
    definition
}

fn set_type(definition: &mut Object, name: &str) {
    if !definition.contains("type") {
        definition.set("type", literal(name));
    }
}

fn set_reference(headers: &mut Object, header: &str, prefix: &str, variable: &Raw) {
    if variable.kind() == Kind::String
        && let Ok(variable) = variable.decode::<String>()
    {
        headers.set(
            header.to_owned(),
            literal(&format!("{prefix}${{{variable}}}")),
        );
    }
}

/// Strings, numbers and truth values are always JSON.
fn literal(value: &(impl serde::Serialize + ?Sized)) -> Raw {
    Raw::encode(value).unwrap_or_else(|_| Raw::null())
}
