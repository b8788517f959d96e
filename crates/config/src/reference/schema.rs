//! JSON Schemas of both files. Members that begin with `x-` are for the page, and are removed when
//! the schema is written.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::server::{KeyDefault, KeyServers, KeyValue, SERVER_KEYS, ServerKey};
use crate::settings::SettingsFile;

const BASE_URL: &str = "https://raw.githubusercontent.com/plexus-mcp/plexus/main/";
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of `plexus.toml`.
pub(super) fn settings() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let generated = settings
        .into_generator()
        .into_root_schema_for::<SettingsFile>();
    let mut schema = generated.to_value();
    clean(&mut schema);
    let mut root = head(super::SETTINGS_SCHEMA, "Settings of Plexus: plexus.toml");
    if let Value::Object(members) = schema {
        root.extend(members.into_iter().filter(|(name, _)| {
            matches!(
                name.as_str(),
                "type" | "properties" | "additionalProperties"
            )
        }));
    }
    Value::Object(root)
}

/// The schema of a file with servers. Other members belong to other clients, so they are allowed.
pub(super) fn servers() -> Value {
    let mut root = head(super::SERVERS_SCHEMA, "MCP servers behind Plexus");
    let oauth = SERVER_KEYS
        .iter()
        .filter_map(|key| Some((key.name.strip_prefix("oauth.")?.to_owned(), value(key))));
    let mut properties: Map<_, _> = SERVER_KEYS
        .iter()
        .filter(|key| !key.name.contains('.'))
        .map(|key| (key.name.to_owned(), value(key)))
        .collect();
    properties.insert(
        "oauth".to_owned(),
        json!({
            "description": "How to sign in to the server.",
            "type": ["object", "null"],
            "properties": oauth.collect::<Map<_, _>>(),
        }),
    );
    let rest = json!({
        "type": "object",
        "properties": {
            "$schema": { "type": "string" },
            "mcpServers": {
                "description": "The servers, by name.",
                "type": ["object", "null"],
                "additionalProperties": { "type": "object", "properties": properties },
            },
        },
    });
    if let Value::Object(rest) = rest {
        root.extend(rest);
    }
    Value::Object(root)
}

/// The schema as the text of its file.
pub(super) fn to_text(mut schema: Value) -> String {
    without_notes(&mut schema);
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

fn head(file: &str, title: &str) -> Map<String, Value> {
    let members = [
        ("$schema", DIALECT.to_owned()),
        ("$id", format!("{BASE_URL}{file}")),
        ("title", title.to_owned()),
    ];
    members
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .into_iter()
        .collect()
}

/// `null` counts as a missing value.
fn value(key: &ServerKey) -> Value {
    let mut schema = match key.value {
        KeyValue::Text => json!({ "type": ["string", "null"] }),
        KeyValue::OneOf(values) => {
            let values = values.iter().map(|value| Value::from(*value));
            json!({ "enum": values.chain([Value::Null]).collect::<Vec<_>>() })
        }
        KeyValue::Flag => json!({ "type": ["boolean", "null"] }),
        KeyValue::Texts => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        KeyValue::Values => {
            json!({ "type": ["object", "null"], "additionalProperties": secret() })
        }
        KeyValue::Secret => secret(),
        KeyValue::Seconds(min) => {
            json!({ "type": ["number", "null"], "minimum": min, "maximum": 3600 })
        }
        KeyValue::Milliseconds => json!({ "type": ["integer", "null"], "minimum": 1 }),
        KeyValue::Port => json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 65535 }),
    };
    let for_some = match key.servers {
        KeyServers::Programs => "For a program. ",
        KeyServers::Addresses => "For an address. ",
        KeyServers::All => "",
    };
    schema["description"] = format!("{for_some}{}", key.meaning).into();
    if let KeyDefault::Json(default) = key.default {
        schema["default"] = serde_json::from_str(default).unwrap();
    }
    schema["examples"] = json!([serde_json::from_str::<Value>(key.example).unwrap()]);
    schema
}

/// A string, or a reference to a secret.
fn secret() -> Value {
    let text = json!({ "type": "string" });
    let command = json!({
        "type": "object",
        "properties": {
            "command": { "type": "array", "items": text, "minItems": 1 },
            "prefix": text,
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    let keyring = json!({
        "type": "object",
        "properties": {
            "keyring": {
                "type": "object",
                "properties": { "service": text, "account": text },
                "required": ["service", "account"],
                "additionalProperties": false,
            },
            "prefix": text,
        },
        "required": ["keyring"],
        "additionalProperties": false,
    });
    let plain = json!({ "type": ["string", "number", "boolean", "null"] });
    json!({ "anyOf": [plain, command, keyring] })
}

/// Removes what a TOML file cannot have, which is `null`, and what only programs need.
fn clean(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(members) => {
            members.remove("format");
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            for list in ["type", "enum"] {
                if let Some(Value::Array(values)) = members.get_mut(list) {
                    values.retain(|value| !value.is_null() && value != "null");
                }
            }
            if let Some(Value::Array(kinds)) = members.get("type")
                && let [only] = kinds.as_slice()
            {
                let only = only.clone();
                members.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(alternatives)) = members.get_mut("anyOf") {
                alternatives.retain(|alternative| alternative["type"] != "null");
                if let [Value::Object(only)] = alternatives.as_mut_slice() {
                    let only = std::mem::take(only);
                    members.remove("anyOf");
                    for (name, value) in only {
                        members.entry(name).or_insert(value);
                    }
                }
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            members.values_mut().for_each(clean);
        }
        _ => {}
    }
}

fn without_notes(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_notes),
        Value::Object(members) => {
            members.retain(|name, _| !name.starts_with("x-"));
            members.values_mut().for_each(without_notes);
        }
        _ => {}
    }
}
