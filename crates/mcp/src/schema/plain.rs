//! Schemas that say little, as most input schemas do.

use plexus_wire::{Kind, Object, Raw};
use serde_json::{Map, Value};

/// A schema that says nothing but which members an object has and of which types they are.
///
/// Whether arguments conform can then be seen without taking their values apart. It is only ever
/// said that they do: what is wrong with others is left to those who can tell.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    members: Vec<(Box<str>, Vec<Type>)>,
    required: Vec<Box<str>>,
    takes_others: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// What is said to people and changes nothing.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "examples", "$schema"];

impl Plain {
    /// What `schema` says, if that is all it says.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut plain = Self {
            members: Vec::new(),
            required: Vec::new(),
            takes_others: true,
        };
        let schema = schema.as_object()?;
        if schema.get("type")?.as_str()? != "object" {
            return None;
        }
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => {}
                "properties" => {
                    for (name, schema) in value.as_object()? {
                        let types = types(schema.as_object()?)?;
                        plain.members.push((name.as_str().into(), types));
                    }
                }
                "required" => {
                    for name in value.as_array()? {
                        plain.required.push(name.as_str()?.into());
                    }
                }
                "additionalProperties" => plain.takes_others = value.as_bool()?,
                annotation if ANNOTATIONS.contains(&annotation) => {}
                _ => return None,
            }
        }
        Some(plain)
    }

    /// Whether it is plain that `instance` conforms.
    pub(super) fn admits(&self, instance: &Object) -> bool {
        let fits = |(name, value): (&str, &Raw)| {
            let member = self.members.iter().find(|(known, _)| **known == *name);
            member.map_or(self.takes_others, |(_, types)| {
                types.iter().any(|wanted| wanted.is_of(value))
            })
        };
        self.required.iter().all(|name| instance.contains(name)) && instance.iter().all(fits)
    }
}

/// The types that a schema names, if it does nothing else.
fn types(schema: &Map<String, Value>) -> Option<Vec<Type>> {
    let is_known = |keyword: &String| keyword == "type" || ANNOTATIONS.contains(&keyword.as_str());
    if !schema.keys().all(is_known) {
        return None;
    }
    match schema.get("type")? {
        Value::Array(names) => names.iter().map(Type::named).collect(),
        name => Some(vec![Type::named(name)?]),
    }
}

impl Type {
    fn named(name: &Value) -> Option<Self> {
        Some(match name.as_str()? {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn is_of(self, value: &Raw) -> bool {
        match (self, value.kind()) {
            (Self::Null, Kind::Null)
            | (Self::Boolean, Kind::Bool)
            | (Self::Number, Kind::Number)
            | (Self::String, Kind::String)
            | (Self::Array, Kind::Array)
            | (Self::Object, Kind::Object) => true,
            // Others may be integers as well, 1.0 for one.
            (Self::Integer, Kind::Number) => {
                let digits = value.as_bytes();
                digits
                    .strip_prefix(b"-")
                    .unwrap_or(digits)
                    .iter()
                    .all(u8::is_ascii_digit)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Validator;

    fn raw(value: &Value) -> Raw {
        Raw::encode(value).unwrap()
    }

    fn admits(plain: &Plain, instance: &Value) -> bool {
        Object::parse(&raw(instance)).is_ok_and(|instance| plain.admits(&instance))
    }

    #[test]
    fn a_schema_that_says_more_is_not_plain() {
        for schema in [
            json!({"type": "object", "minProperties": 1}),
            json!({"type": "object", "properties": {"a": true}}),
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}),
            json!({"type": "object", "properties": {"a": {"type": "string", "format": "date"}}}),
            json!({"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "$ref": "#/$defs/a"}),
            json!({"type": "string"}),
            json!({"type": ["object", "null"]}),
            json!({}),
            json!(true),
        ] {
            assert!(Plain::of(&schema).is_none(), "{schema}");
        }
    }

    /// S000-37: it says of nothing that it conforms which the whole validator would refuse, and sees
    /// at once what callers usually send.
    #[test]
    fn it_agrees_with_the_validator() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "Arguments",
            "properties": {
                "text": {"type": "string", "description": "said"},
                "count": {"type": "integer", "default": 1},
                "ratio": {"type": "number"},
                "maybe": {"type": ["string", "null"]},
                "on": {"type": "boolean"}, "list": {"type": "array"}, "map": {"type": "object"},
            },
            "required": ["text"],
        });
        let mut strict = schema.clone();
        strict["additionalProperties"] = json!(false);
        let usual = [
            json!({"text": "hi"}),
            json!({"text": "", "count": -3, "ratio": 1.5, "maybe": null, "on": true, "list": [1], "map": {"a": {}}}),
        ];
        let odd = [
            json!({}),
            json!({"text": 1}),
            json!({"text": "a", "count": 1.5}),
            json!({"text": "a", "count": 1.0}),
            json!({"text": "a", "count": "1"}),
            json!({"text": "a", "maybe": 1}),
            json!({"text": "a", "on": null}),
            json!({"text": "a", "list": {}}),
            json!({"text": "a", "map": []}),
            json!({"text": "a", "other": 1}),
            json!({"Text": "a"}),
            json!([]),
            json!("a"),
        ];
        for schema in [schema, strict] {
            let plain = Plain::of(&schema).unwrap();
            let whole = Validator::compile(&raw(&schema)).unwrap();
            for instance in &usual {
                assert!(admits(&plain, instance), "{instance}");
            }
            for instance in usual.iter().chain(&odd) {
                let conforms = whole.compiled.is_valid(instance);
                assert!(conforms || !admits(&plain, instance), "{instance}");
            }
        }
    }
}
