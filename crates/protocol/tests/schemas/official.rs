//! The official JSON Schema of a revision, closed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use plexus_mcp_protocol::Revision;
use plexus_mcp_wire::{Object, Raw};
use serde_json::{Map, Value, json};

/// Definitions whose `_meta` goes to revisions that do not list it, too: the schemas as published are
/// open there.
const DEFINITIONS_WITH_META: [&str; 4] = ["Tool", "Resource", "ResourceTemplate", "Prompt"];

pub(crate) struct Official {
    revision: Revision,
    /// The member that holds the definitions: its name changed with the dialect.
    section: &'static str,
    schema: Value,
    compiled: RefCell<HashMap<String, jsonschema::Validator>>,
}

impl Official {
    pub(crate) fn load(revision: Revision) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join(format!(".tools/schemas/{revision}/schema.json"));
        let json = std::fs::read(&path).unwrap_or_else(|error| {
            panic!("the schema of {revision} is not installed, run ./check setup ({error})")
        });
        let mut schema: Value = serde_json::from_slice(&json).unwrap();
        let section = if schema.get("$defs").is_some() {
            "$defs"
        } else {
            "definitions"
        };
        for (name, definition) in schema[section].as_object_mut().unwrap() {
            let describes_a_schema = name.ends_with("Schema") || name.ends_with("SchemaDefinition");
            if !describes_a_schema {
                close(definition);
            }
            if DEFINITIONS_WITH_META.contains(&name.as_str()) {
                definition["properties"]["_meta"] = json!({"type": "object"});
            }
        }
        Self {
            revision,
            section,
            schema,
            compiled: RefCell::default(),
        }
    }

    pub(crate) fn defines(&self, definition: &str) -> bool {
        self.definitions().get(definition).is_some()
    }

    /// Panics unless `message` is what the definition of that name describes.
    pub(crate) fn accepts(&self, definition: &str, message: &Raw) {
        if let Some(complaint) = self.complaint(definition, message) {
            panic!(
                "{definition} of {}: {complaint}\n{}",
                self.revision,
                message.as_str()
            );
        }
    }

    /// The same for the params of a request or notification.
    pub(crate) fn accepts_call(&self, definition: &str, method: &str, params: &Raw) {
        let members = &self.definitions()[definition]["properties"];
        let mut message = Object::new();
        if members.get("id").is_some() {
            message.set("id", Raw::encode(&1).unwrap());
        }
        if members.get("jsonrpc").is_some() {
            message.set("jsonrpc", Raw::encode("2.0").unwrap());
        }
        message.set("method", Raw::encode(method).unwrap());
        message.set("params", params.clone());
        self.accepts(definition, &message.to_raw());
    }

    /// The first violation of `message`, if it is invalid.
    pub(crate) fn complaint(&self, definition: &str, message: &Raw) -> Option<String> {
        assert!(
            self.defines(definition),
            "{} has no {definition}",
            self.revision
        );
        let instance: Value = message.decode().unwrap();
        let mut compiled = self.compiled.borrow_mut();
        let validator = compiled
            .entry(definition.to_owned())
            .or_insert_with(|| self.compile(definition));
        let mut errors = validator.iter_errors(&instance);
        errors
            .next()
            .map(|error| format!("{}: {error}", error.instance_path()))
    }

    fn definitions(&self) -> &Value {
        &self.schema[self.section]
    }

    fn compile(&self, definition: &str) -> jsonschema::Validator {
        let definitions = self.definitions().clone();
        let schema = Map::from_iter([
            ("$schema".to_owned(), self.schema["$schema"].clone()),
            (
                "$ref".to_owned(),
                format!("#/{}/{definition}", self.section).into(),
            ),
            (self.section.to_owned(), definitions),
        ]);
        jsonschema::options()
            .should_validate_formats(true)
            .offline()
            .build(&schema.into())
            .unwrap()
    }
}

/// Forbids, in every object type that lists its members, all others.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords
                .iter_mut()
                .filter(|(name, _)| !holds_a_schema(name))
                .for_each(|(_, value)| close(value));
            if lists_members(keywords) && !keywords.contains_key("additionalProperties") {
                keywords.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        _ => {}
    }
}

fn holds_a_schema(name: &str) -> bool {
    ["inputSchema", "outputSchema", "requestedSchema"].contains(&name)
}

/// `_meta` names the members MCP reserves and is open to all others.
fn lists_members(keywords: &Map<String, Value>) -> bool {
    let members = keywords.get("properties").and_then(Value::as_object);
    let is_meta = |name: &String| name.starts_with("io.modelcontextprotocol/");
    keywords.get("type").is_some_and(|name| name == "object")
        && members.is_some_and(|members| !members.keys().any(is_meta))
}
