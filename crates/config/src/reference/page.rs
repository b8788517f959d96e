//! Renders `docs/configuration.md`.

use serde_json::{Map, Value};

use super::schema;
use crate::server::{KeyDefault, KeyServers, KeyValue, SERVER_KEYS, ServerKey};

const HEAD: &str = "\
# Configuration reference

This page is for operators and users who look up a key of a configuration file.
It lists every key of `plexus.toml` and every key of a server's definition, with its type, default, unit and an example.
[settings.md](settings.md) and [servers.md](servers.md) explain what they are for.

This page is generated from the types that the files are parsed into; a test fails if it is stale.

`plexus config check FILE` checks a file, and `plexus config show` prints the settings that are in effect.

## JSON Schemas

Editors that support JSON Schema complete and check the keys of both files.

| file | schema |
|---|---|
| `plexus.toml` | [`schemas/plexus.schema.json`](schemas/plexus.schema.json) |
| files with servers | [`schemas/servers.schema.json`](schemas/servers.schema.json) |

In `plexus.toml`, a comment in the first line names the schema:

```toml
#:schema https://raw.githubusercontent.com/plexus-mcp/plexus/main/docs/schemas/plexus.schema.json

[hub]
start = \"lazy\"
```

In a file with servers, it is the member `$schema`:

```json
{
  \"$schema\": \"https://raw.githubusercontent.com/plexus-mcp/plexus/main/docs/schemas/servers.schema.json\",
  \"mcpServers\": {
    \"git\": { \"command\": \"mcp-server-git\", \"args\": [\"--repository\", \".\"] }
  }
}
```

## Keys of `plexus.toml`

Every key is optional, unless its default is \"required\".
An unknown key is an error.
";

const SERVERS_HEAD: &str = "
## Keys of a server

These are the keys of a definition under `mcpServers`.
Unknown keys belong to other clients, and are ignored.
A value may contain `${NAME}` or `${NAME:-default}` for an environment variable.
A reference to a secret is `{\"command\": [\"program\", \"argument\"]}` for the output of a program, or `{\"keyring\": {\"service\": \"…\", \"account\": \"…\"}}` for the keyring of the desktop; `\"prefix\"` beside it is put before the secret.
";

const COLUMNS: &str = "\
| key | type | default | unit | example | meaning |
|---|---|---|---|---|---|
";

/// The whole page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    let settings = schema::settings();
    for (name, schema) in properties(&settings).unwrap() {
        let named = schema
            .get("additionalProperties")
            .filter(|rest| rest.is_object());
        match named {
            Some(entry) => table(&mut page, &format!("{name}.NAME"), false, entry),
            None => table(&mut page, name, false, schema),
        }
    }
    page += SERVERS_HEAD;
    for (heading, servers) in [
        ("A program", KeyServers::Programs),
        ("An address", KeyServers::Addresses),
        ("Both", KeyServers::All),
    ] {
        page.extend(["\n### ", heading, "\n\n", COLUMNS]);
        let own = |key: &&ServerKey| key.servers == servers && !key.name.contains('.');
        SERVER_KEYS
            .iter()
            .filter(own)
            .for_each(|key| page += &server_row(key));
    }
    page.extend(["\n### `oauth` of an address\n\n", COLUMNS]);
    let members = SERVER_KEYS.iter().filter(|key| key.name.contains('.'));
    members.for_each(|key| page += &server_row(key));
    page
}

/// Appends a table of the file and the tables in it.
fn table(page: &mut String, path: &str, is_list: bool, schema: &Value) {
    let title = if is_list {
        format!("[[{path}]]")
    } else {
        format!("[{path}]")
    };
    let about = schema["description"].as_str();
    let about = about.unwrap_or_else(|| panic!("{title} has no doc comment"));
    page.extend(["\n### `", &title, "`\n\n", &sentences(about), "\n"]);
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let mut rows = String::new();
    let mut inner = Vec::new();
    for (key, schema) in properties(schema).unwrap() {
        let path = format!("{path}.{key}");
        if properties(schema).is_some() {
            inner.push((path, false, schema));
            continue;
        }
        let is_required = required.iter().any(|name| *name == key);
        rows += &row(&path, key, schema, is_required);
        if properties(&schema["items"]).is_some() {
            inner.push((path, true, &schema["items"]));
        }
    }
    if !rows.is_empty() {
        page.extend(["\n", COLUMNS, &rows]);
    }
    for (path, is_list, schema) in inner {
        table(page, &path, is_list, schema);
    }
}

fn row(path: &str, key: &str, schema: &Value, is_required: bool) -> String {
    let meaning = schema["description"].as_str();
    let meaning = meaning.unwrap_or_else(|| panic!("{path} has no doc comment"));
    let example = schema["examples"].get(0);
    let example = example.unwrap_or_else(|| {
        panic!("{path} has no example: add schemars(extend(\"examples\" = [..])) to its field")
    });
    let default = match (&schema["default"], &schema["x-default"]) {
        _ if is_required => "required".to_owned(),
        (_, Value::String(words)) => words.clone(),
        (Value::Null, _) => panic!(
            "{path} has no default: add schemars(extend(\"default\" = ..)) or \"x-default\" to its field"
        ),
        (default, _) => code(&toml(default)),
    };
    let unit = schema["x-unit"].as_str().unwrap_or_default();
    let meaning = format!("{meaning}{}", variants(schema));
    cells(&[
        &code(key),
        &kind(schema),
        &default,
        unit,
        &code(&toml(example)),
        &meaning,
    ])
}

fn server_row(key: &ServerKey) -> String {
    let name = key.name.strip_prefix("oauth.").unwrap_or(key.name);
    let one_of;
    let (kind, unit) = match key.value {
        KeyValue::Text => ("string", ""),
        KeyValue::OneOf(values) => {
            let values: Vec<_> = values
                .iter()
                .map(|value| format!("`\"{value}\"`"))
                .collect();
            one_of = alternatives(&values);
            (one_of.as_str(), "")
        }
        KeyValue::Flag => ("true or false", ""),
        KeyValue::Texts => ("list of strings", ""),
        KeyValue::Values => ("object of strings or references to secrets", ""),
        KeyValue::Secret => ("string or reference to a secret", ""),
        KeyValue::Seconds(min) => {
            one_of = format!("number, {min} to 3600");
            (one_of.as_str(), "seconds")
        }
        KeyValue::Milliseconds => ("whole number, at least 1", "milliseconds"),
        KeyValue::Port => ("whole number, 1 to 65535", ""),
    };
    let default = match key.default {
        KeyDefault::Required => "required".to_owned(),
        KeyDefault::Json(default) => code(default),
        KeyDefault::Words(words) => words.to_owned(),
    };
    cells(&[
        &code(name),
        kind,
        &default,
        unit,
        &code(key.example),
        key.meaning,
    ])
}

/// The type in words, with its range.
fn kind(schema: &Value) -> String {
    if let Some(kind) = schema["x-type"].as_str() {
        return kind.to_owned();
    }
    let constants = constants(schema);
    if !constants.is_empty() {
        let constants: Vec<_> = constants
            .iter()
            .map(|(value, _)| code(&toml(value)))
            .collect();
        return alternatives(&constants);
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return alternatives(&kinds.iter().map(kind).collect::<Vec<_>>());
    }
    let kind = match schema["type"].as_str() {
        Some("string") => "string",
        Some("boolean") => "true or false",
        Some("integer") => "whole number",
        Some("number") => "number",
        Some("array") if properties(&schema["items"]).is_some() => "list of tables",
        Some("array") => "list of strings",
        other => panic!("the page has no words for the type {other:?}"),
    };
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, _) => kind.to_owned(),
        (min, Value::Null) => format!("{kind}, at least {min}"),
        (min, max) => format!("{kind}, {min} to {max}"),
    }
}

/// The strings that a value may be, with their doc comments.
fn constants(schema: &Value) -> Vec<(Value, Option<&str>)> {
    let documented = schema["oneOf"].as_array().into_iter().flatten();
    let documented = documented.filter_map(|one| {
        let value = one.get("const")?;
        Some((value.clone(), one["description"].as_str()))
    });
    let plain = schema["enum"].as_array().into_iter().flatten();
    documented
        .chain(plain.map(|value| (value.clone(), None)))
        .collect()
}

/// The meaning of each value.
fn variants(schema: &Value) -> String {
    let constants = constants(schema);
    let documented = constants
        .iter()
        .filter_map(|(value, about)| Some(format!(" {}: {}", code(&toml(value)), (*about)?)));
    documented.collect()
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn alternatives(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The value as TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(toml).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn cells(cells: &[&str]) -> String {
    let escaped: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", escaped.join(" | "))
}

/// One sentence on a line.
fn sentences(text: &str) -> String {
    text.replace(". ", ".\n")
}
