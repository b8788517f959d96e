//! Where JSON Schema keeps schemas inside schemas.

use serde_json::Value;

/// The relation of a subschema to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// As the schema of the property of this name, under `properties`.
    Property(&'a str),
    /// Under this other keyword.
    Keyword(&'a str),
}

/// The direct subschemas of `schema`, by the keywords of all dialects.
///
/// The contents of `const`, `enum`, `default` and `examples` are data, not subschemas.
pub(crate) fn subschemas(schema: &Value) -> impl Iterator<Item = (Place<'_>, &Value)> {
    let keywords = schema.as_object().into_iter().flatten();
    keywords.flat_map(|(keyword, value)| -> Vec<(Place<'_>, &Value)> {
        let place = Place::Keyword(keyword);
        match (keyword.as_str(), value) {
            ("properties", Value::Object(named)) => named
                .iter()
                .map(|(name, schema)| (Place::Property(name), schema))
                .collect(),
            (
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => named.values().map(|schema| (place, schema)).collect(),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().map(|schema| (place, schema)).collect()
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
            ) => vec![(place, schema)],
            _ => Vec::new(),
        }
    })
}
