//! Generates `docs/configuration.md` and the JSON Schemas in `docs/schemas` from the types that the
//! files are parsed into. Compiled for tests only.
//!
//! `PLEXUS_REGENERATE=1 cargo test -p plexus-mcp-config reference` writes the generated files again.

mod examples;
mod page;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/configuration.md";
const SETTINGS_SCHEMA: &str = "docs/schemas/plexus.schema.json";
const SERVERS_SCHEMA: &str = "docs/schemas/servers.schema.json";

/// The variable that makes the tests write the files instead of comparing them.
const REGENERATE: &str = "PLEXUS_REGENERATE";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_generated(name: &str, expected: &str) {
    let file = repository().join(name);
    if std::env::var_os(REGENERATE).is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "{name} is not what the types say; write it again with \
         {REGENERATE}=1 cargo test -p plexus-mcp-config reference"
    );
}

#[test]
fn the_page_and_the_schemas_are_those_of_the_types() {
    assert_generated(PAGE, &page::page());
    assert_generated(SETTINGS_SCHEMA, &schema::to_text(schema::settings()));
    assert_generated(SERVERS_SCHEMA, &schema::to_text(schema::servers()));
}

/// The keys of `plexus.toml` that have a value of their own: those whose tables are not in a list.
pub(crate) fn setting_keys() -> Vec<String> {
    fn collect(schema: &serde_json::Value, path: &str, keys: &mut Vec<String>) {
        let named = &schema["additionalProperties"];
        if let Some(properties) = schema["properties"].as_object() {
            for (key, schema) in properties {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                collect(schema, &path, keys);
            }
        } else if named.is_object() {
            collect(named, &format!("{path}.NAME"), keys);
        } else {
            keys.push(path.to_owned());
        }
    }
    let mut keys = Vec::new();
    collect(&schema::settings(), "", &mut keys);
    keys
}
