//! The direct subschemas of a JSON Schema.

use serde_json::Value;

/// Where a subschema is in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubschemaLocation<'a> {
    /// As the schema of the property of this name, under `properties`.
    Property(&'a str),
    /// Under this other keyword.
    Keyword(&'a str),
}

/// The direct subschemas of `schema`, by the keywords of all dialects.
///
/// The contents of `const`, `enum`, `default` and `examples` are data, not subschemas.
pub(crate) fn subschemas(schema: &Value) -> impl Iterator<Item = (SubschemaLocation<'_>, &Value)> {
    let keywords = schema.as_object().into_iter().flatten();
    keywords.flat_map(|(keyword, value)| -> Vec<(SubschemaLocation<'_>, &Value)> {
        let location = SubschemaLocation::Keyword(keyword);
        match (keyword.as_str(), value) {
            ("properties", Value::Object(named)) => named
                .iter()
                .map(|(name, schema)| (SubschemaLocation::Property(name), schema))
                .collect(),
            (
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => named.values().map(|schema| (location, schema)).collect(),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().map(|schema| (location, schema)).collect()
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contentSchema",
                schema,
            ) => vec![(location, schema)],
            _ => Vec::new(),
        }
    })
}
