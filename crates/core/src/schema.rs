//! JSON Schemas of Rust types.

use plexus_mcp_wire::Raw;
use schemars::transform::{RecursiveTransform, Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;

/// The arguments of a tool that takes none: any that a caller gives are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("properties" = {}))]
#[expect(clippy::exhaustive_structs, reason = "it has no members by definition")]
pub struct NoArguments {}

/// Encodes a schema without the keywords that clients and models do not need: `$schema`, which
/// names the default dialect, the name and the doc comment of the Rust type, and the formats of
/// Rust's number types (`uint8`, `double`), which some clients report as unknown.
pub(crate) fn to_raw(mut schema: Schema) -> Raw {
    for keyword in ["$schema", "title", "description"] {
        schema.remove(keyword);
    }
    // Some model APIs refuse a tool without it.
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if is_object && schema.get("properties").is_none() {
        schema.insert("properties".to_owned(), serde_json::json!({}));
    }
    RecursiveTransform(forget_width).transform(&mut schema);
    // A schema is JSON by nature; should it ever fail to be, the validator refuses `null`.
    Raw::encode(&schema).unwrap_or_else(|_| Raw::null())
}

fn forget_width(schema: &mut Schema) {
    let is_width = |format: &str| {
        let whole = format.trim_start_matches('u').strip_prefix("int");
        let bits = whole.is_some_and(|bits| bits.bytes().all(|digit| digit.is_ascii_digit()));
        bits || matches!(format, "float" | "double")
    };
    let format = schema.get("format").and_then(|format| format.as_str());
    if format.is_some_and(is_width) {
        schema.remove("format");
    }
}

/// Shortens a schema without changing what it accepts: enumerations become lists of their values,
/// which loses the descriptions of the values, and defaults that say nothing are left out.
pub(crate) fn concise(schema: &Raw) -> Raw {
    let Ok(mut short) = schema.decode::<Schema>() else {
        return schema.clone();
    };
    shorten(&mut short);
    Raw::encode(&short).unwrap_or_else(|_| schema.clone())
}

fn shorten(schema: &mut Schema) {
    transform_subschemas(&mut shorten, schema);
    if let Some(values) = schema.get("oneOf").and_then(constants) {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), values);
    }
    if let Some(nullable) = schema.get("anyOf").and_then(nullable_enumeration) {
        schema.remove("anyOf");
        schema.insert("type".to_owned(), vec!["string", "null"].into());
        schema.insert("enum".to_owned(), nullable);
    }
    let says_nothing =
        |default: &Value| default.is_null() || default.as_array().is_some_and(Vec::is_empty);
    if schema.get("default").is_some_and(says_nothing) {
        schema.remove("default");
    }
}

/// The values of `oneOf`, if each alternative is one string.
fn constants(alternatives: &Value) -> Option<Value> {
    let alternatives = alternatives.as_array()?.iter();
    let value = |one: &Value| {
        let mut keywords = one.as_object()?.keys();
        let is_plain =
            keywords.all(|keyword| ["const", "description", "type"].contains(&&**keyword));
        one.get("const")
            .filter(|value| is_plain && value.is_string())
            .cloned()
    };
    alternatives
        .map(value)
        .collect::<Option<Vec<_>>>()
        .map(Value::Array)
}

/// The values of `anyOf`, if it is an enumeration of strings or null.
fn nullable_enumeration(alternatives: &Value) -> Option<Value> {
    let [some, none] = alternatives.as_array()?.as_slice() else {
        return None;
    };
    let mut keywords = some.as_object()?.keys();
    let is_plain = keywords.all(|keyword| ["description", "enum", "type"].contains(&&**keyword));
    let is_nullable = none.as_object()?.len() == 1 && none.get("type")? == "null";
    let mut values = some.get("enum")?.as_array()?.clone();
    values.push(Value::Null);
    (is_plain && is_nullable && some.get("type")? == "string").then_some(Value::Array(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw<T: JsonSchema>() -> String {
        to_raw(schemars::schema_for!(T)).as_str().to_owned()
    }

    /// A concise schema accepts the same values; only what means nothing to a validator is gone.
    #[test]
    fn a_concise_schema_is_shorter_and_accepts_the_same() {
        #[derive(JsonSchema)]
        #[schemars(inline)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        enum Kind {
            /// Prose.
            Text,
            /// Source code.
            Code,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Arguments {
            kind: Kind,
            #[schemars(default)]
            other: Option<Kind>,
            #[schemars(default)]
            tags: Vec<String>,
        }
        let long = to_raw(schemars::schema_for!(Arguments));
        let short = concise(&long).decode::<Value>().unwrap();
        let expected = serde_json::json!({
            "kind": {"type": "string", "enum": ["Text", "Code"]},
            "other": {"type": ["string", "null"], "enum": ["Text", "Code", null]},
            "tags": {"type": "array", "items": {"type": "string"}},
        });
        assert_eq!(short["properties"], expected, "{long:?}");
        let mixed = Raw::encode(&serde_json::json!({
            "oneOf": [{"const": "all"}, {"type": "integer"}], "default": 1
        }));
        let mixed = mixed.unwrap();
        assert_eq!(concise(&mixed), mixed);
    }

    #[test]
    fn no_arguments_are_a_closed_and_empty_object() {
        let expected = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
        assert_eq!(raw::<NoArguments>(), expected);
    }

    /// The doc comment of a type is not in its schema; the doc comments of its members are.
    #[test]
    fn only_members_are_described() {
        /// Private thoughts.
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Arguments {
            /// Whom to greet.
            name: String,
        }
        let name = r#"{"description":"Whom to greet.","type":"string"}"#;
        let expected =
            format!(r#"{{"type":"object","properties":{{"name":{name}}},"required":["name"]}}"#);
        assert_eq!(raw::<Arguments>(), expected);
    }
    /// JSON has one number type, so the range of a `u8` is in its bounds, not in a format.
    #[test]
    fn numbers_have_no_widths() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Arguments {
            /// How many.
            count: Vec<Option<u8>>,
            /// How much.
            #[schemars(extend("format" = "date-time"))]
            much: f64,
            /// How long.
            long: f64,
        }
        let schema = raw::<Arguments>();
        assert!(
            !schema.contains("uint8") && !schema.contains("double"),
            "{schema}"
        );
        assert!(schema.contains(r#""maximum":255"#), "{schema}");
        assert!(schema.contains(r#""format":"date-time""#), "{schema}");
    }
}
