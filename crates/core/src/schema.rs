//! JSON Schemas of Rust types.

use plexus_mcp_wire::Raw;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn raw<T: JsonSchema>() -> String {
        to_raw(schemars::schema_for!(T)).as_str().to_owned()
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
    /// JSON has one kind of number; what a `u8` can be is said by its bounds.
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
