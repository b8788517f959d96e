//! The examples in the reference and in all documents are valid.

use std::fs;
use std::path::{Path, PathBuf};

use plexus_mcp_wire::Raw;
use serde_json::{Map, Value, json};

use super::{repository, schema};
use crate::problem::ConfigProblem;
use crate::server::{ReadContext, SERVER_KEYS, read};
use crate::settings::SettingsFile;
use crate::{Locations, Scope, ServerEntry, Source, load};

/// The file of `plexus.toml` that has every key at once, each with its example.
#[test]
fn the_example_of_each_setting_is_valid() {
    let file = example_of(&schema::settings());
    let text = toml::to_string(&file).unwrap();
    SettingsFile::parse(Path::new("plexus.toml"), &text).unwrap();
    assert!(text.contains("[clients.NAME.tools]"), "{text}");
    assert!(text.contains("max_sessions"), "{text}");
}

fn example_of(schema: &Value) -> Value {
    if let Some(properties) = schema["properties"].as_object() {
        let members = properties
            .iter()
            .map(|(key, schema)| (key.clone(), example_of(schema)));
        return Value::Object(members.collect());
    }
    if schema["additionalProperties"].is_object() {
        return json!({ "NAME": example_of(&schema["additionalProperties"]) });
    }
    if schema["items"]["properties"].is_object() {
        return json!([example_of(&schema["items"])]);
    }
    schema["examples"][0].clone()
}

#[test]
fn the_example_of_each_key_of_a_server_is_valid() {
    for key in SERVER_KEYS {
        let example = serde_json::from_str(key.example).unwrap();
        let entry = server_with(key.name, example);
        let entry = entry.unwrap_or_else(|problem| panic!("{}: {problem}", key.name));
        let other: Vec<_> = entry.other.iter().map(|(name, _)| name).collect();
        assert_eq!(other, [""; 0], "{}", key.name);
    }
}

/// A list of lists is a valid value of no key, so a key that accepts it is not read.
#[test]
fn each_key_of_a_server_is_read() {
    for key in SERVER_KEYS {
        let problem = server_with(key.name, json!([[]])).unwrap_err();
        let named = problem.key.as_deref().unwrap_or_default();
        assert!(named.starts_with(key.name), "{}: {problem}", key.name);
    }
}

/// Reads the definition of a server that has this value, and the other keys that it needs.
fn server_with(key: &str, value: Value) -> Result<ServerEntry, ConfigProblem> {
    let address = json!({ "url": "https://example.com/mcp" });
    let mut definition = match key {
        "command" | "args" | "env" | "env_file" | "cwd" | "type" => json!({ "command": "x" }),
        "audience" => json!({ "url": "https://example.com/mcp", "identity": "forward" }),
        "name" => json!({ "type": "sdk" }),
        _ => address,
    };
    match key.strip_prefix("oauth.") {
        Some(member) => {
            let mut oauth = json!({ "clientId": "c", "clientSecret": "s" });
            let enterprise = json!({
                "clientId": "c",
                "grant": "enterprise",
                "idToken": "t",
                "idpClientId": "i",
                "idpTokenEndpoint": "https://idp.example.com/token",
            });
            match member {
                "assertion" => oauth["grant"] = "workload".into(),
                "idToken" | "idpClientId" | "idpTokenEndpoint" => oauth = enterprise,
                "algorithm" | "keyId" => oauth["privateKey"] = "pem".into(),
                _ => {}
            }
            oauth[member] = value;
            definition["oauth"] = oauth;
        }
        None => definition[key] = value,
    }
    let source = Source::new(Scope::User, "/home/ada/.mcp.json");
    let context = ReadContext {
        source: &source,
        base: Path::new("/home/ada"),
        environment: &|_| Some("value".to_owned()),
        read: &|_| Ok(Some("A=b\n".to_owned())),
    };
    read("server", &Raw::encode(&definition).unwrap(), &context)
}

/// A block of code of a document.
struct Block {
    document: PathBuf,
    line: usize,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let root = repository();
    let mut documents: Vec<_> = [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ]
    .map(|name| root.join(name))
    .into();
    let inside = |folder: &str| {
        fs::read_dir(root.join(folder))
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    documents.extend(inside("docs").filter(|file| file.extension().is_some_and(|end| end == "md")));
    documents.extend(
        inside("crates")
            .map(|krate| krate.join("README.md"))
            .filter(|file| file.exists()),
    );
    documents
        .into_iter()
        .flat_map(|document| blocks_of(&document))
        .collect()
}

fn blocks_of(document: &Path) -> Vec<Block> {
    let text = fs::read_to_string(document).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                open = Some(Block {
                    document: document.to_owned(),
                    line: index + 1,
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (None, Some(mut block)) => {
                block.text += line;
                block.text += "\n";
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn every_example_in_the_documents_is_valid() {
    let mut counts = Map::new();
    for block in blocks() {
        let place = format!("{}:{}", block.document.display(), block.line);
        let problems = match block.language.as_str() {
            "toml" => problems_of_toml(&block.text),
            "json" | "jsonc" | "json5" => problems_of_json(&block.text),
            _ => continue,
        };
        assert_eq!(problems, [""; 0], "{place}");
        let count = counts.entry(block.language).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap() + 1);
    }
    let count = |language: &str| counts[language].as_u64().unwrap();
    assert!(count("toml") >= 5 && count("json") >= 4, "{counts:?}");
}

fn problems_of_toml(text: &str) -> Vec<String> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![error.to_string()],
    };
    // A part of a manifest of Cargo.
    if table.contains_key("dependencies") {
        return Vec::new();
    }
    let parsed = SettingsFile::parse(Path::new("plexus.toml"), text);
    parsed.err().iter().map(ToString::to_string).collect()
}

fn problems_of_json(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(value) if value.get("mcpServers").is_some() => {
                problems.extend(problems_of_servers(&value));
            }
            Ok(_) => {}
            Err(error) => problems.push(error.to_string()),
        }
    }
    problems
}

fn problems_of_servers(value: &Value) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("servers.json");
    fs::write(&file, value.to_string()).unwrap();
    let mut locations = Locations::of(directory.path(), &|_| None);
    locations.explicit = vec![file];
    let loaded = load(&locations, &|_| Some("value".to_owned()));
    let unknown = loaded.servers.iter().flat_map(|server| {
        server
            .other
            .iter()
            .map(|(key, _)| format!("{}: unknown key {key}", server.name))
    });
    let problems = loaded.problems.iter().map(ToString::to_string);
    problems.chain(unknown).collect()
}
