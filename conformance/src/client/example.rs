//! Values that fit a JSON Schema.

use serde_json::{Map, Value, json};

/// An object with a value for every property of `schema`.
pub(crate) fn object(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let members = properties.into_iter().flatten();
    let values: Map<_, _> = members
        .map(|(name, property)| (name.clone(), value(property)))
        .collect();
    Value::Object(values)
}

/// The default of the schema, or else some value of its type.
fn value(schema: &Value) -> Value {
    if let Some(proposed) = ["default", "const"].iter().find_map(|key| schema.get(key)) {
        return proposed.clone();
    }
    if let Some(choice) = first(schema, "enum") {
        return choice.clone();
    }
    if let Some(choice) = first(schema, "oneOf").or_else(|| first(schema, "anyOf")) {
        return value(choice);
    }
    let kind = first(schema, "type").or_else(|| schema.get("type"));
    match kind.and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => object(schema),
        Some("null") => Value::Null,
        _ => json!("example"),
    }
}

fn first<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Value> {
    schema.get(keyword)?.as_array()?.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_suggested_by_the_schema_take_precedence() {
        let proposals = [
            (json!({ "type": "integer", "default": 30 }), json!(30)),
            (json!({ "const": "fixed" }), json!("fixed")),
            (json!({ "type": "string", "enum": ["a", "b"] }), json!("a")),
            (
                json!({ "oneOf": [{ "const": "x", "title": "X" }] }),
                json!("x"),
            ),
            (json!({ "type": "number", "minimum": 5 }), json!(5)),
        ];
        for (schema, expected) in proposals {
            assert_eq!(value(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn every_type_has_an_example() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "number" },
                "b": { "type": ["boolean", "null"] },
                "c": { "type": "array", "items": { "type": "string" } },
                "d": { "type": "object", "properties": { "e": { "type": "string" } } },
                "f": { "type": "null" },
                "g": true,
            },
        });
        let expected = json!({
            "a": 1, "b": true, "c": [], "d": { "e": "example" }, "f": null, "g": "example",
        });
        assert_eq!(object(&schema), expected);
    }

    #[test]
    fn a_schema_without_properties_gets_an_empty_object() {
        assert_eq!(object(&json!({ "type": "object" })), json!({}));
    }
}
