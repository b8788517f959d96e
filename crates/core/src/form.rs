//! Forms that a user is asked to fill in.

use plexus_mcp_protocol::messages::{ElicitAction, ElicitResult};
use plexus_mcp_protocol::schema::Validator;
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::event::AskError;

/// The formats of strings that forms know.
const STRING_FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// Validates the answer to a form.
pub(crate) struct Form {
    validator: Validator,
}

impl Form {
    /// The form with the fields that `schema` describes.
    ///
    /// # Errors
    /// The schema is not that of a form, a flat object (ELIC-07).
    pub(crate) fn new(schema: &Raw) -> Result<Self, AskError> {
        let unaskable = |error: &dyn std::error::Error| AskError::Unaskable(error.to_string());
        let described: Value = schema.decode().map_err(|error| unaskable(&error))?;
        check_flat(&described)?;
        let validator = Validator::compile(schema).map_err(|error| unaskable(&error))?;
        Ok(Self { validator })
    }

    /// Validates the answer against the schema of the form (ELIC-15). An answer without content
    /// counts as a form whose fields are all empty.
    pub(crate) fn check(&self, answer: &ElicitResult) -> Result<(), AskError> {
        if answer.action != ElicitAction::Accept {
            return Ok(());
        }
        let nothing = Raw::empty_object();
        let content = answer.content.as_ref().unwrap_or(&nothing);
        self.validator
            .validate(content)
            .map_err(|violations| AskError::Malformed(violations.to_string()))
    }
}

/// The schema of a form with the fields of `T`, with only the keywords that MCP allows in forms.
pub(crate) fn schema_of<T: JsonSchema>() -> Raw {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // Forms know no references.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if let Some(schema) = schema.as_object_mut() {
        schema.retain(|keyword, _| !ABOUT_THE_TYPE.contains(&keyword.as_str()));
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
        for field in fields.into_iter().flat_map(Map::values_mut) {
            simplify(field);
        }
    }
    Raw::encode(&schema).unwrap_or_else(|_| Raw::null())
}

/// Keywords about the Rust type as a whole, which are removed from a form's schema.
const ABOUT_THE_TYPE: [&str; 4] = ["$schema", "title", "description", "additionalProperties"];

/// Rewrites the schema of a field to the keywords that MCP allows in forms.
fn simplify(field: &mut Value) {
    forget_null(field);
    let Some(field) = field.as_object_mut() else {
        return;
    };
    if let Some(choices) = field.remove("oneOf") {
        field.insert("type".to_owned(), "string".into());
        field.insert("oneOf".to_owned(), titled(choices));
    }
    if let Some(items) = field.get_mut("items").and_then(Value::as_object_mut)
        && let Some(choices) = items.remove("oneOf")
    {
        items.remove("description");
        items.insert("anyOf".to_owned(), titled(choices));
    }
    let format = field.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !STRING_FORMATS.contains(&format)) {
        field.remove("format");
    }
}

/// Removes `null` from the schema of an optional field: a form has no `null`, and an empty field
/// is left out.
fn forget_null(field: &mut Value) {
    let Some(members) = field.as_object_mut() else {
        return;
    };
    members.retain(|keyword, value| keyword != "default" || !value.is_null());
    if let Some(types) = members.get_mut("type")
        && let Some(names) = types.as_array_mut()
    {
        names.retain(|name| name != "null");
        if let [only] = &mut names[..] {
            *types = only.take();
        }
    }
    if let Some(choices) = members.get_mut("enum").and_then(Value::as_array_mut) {
        choices.retain(|choice| !choice.is_null());
    }
    // schemars describes an optional field of a named type with `anyOf` and `null`.
    if let Some(Value::Array(mut alternatives)) = members.remove("anyOf") {
        alternatives.retain(|alternative| *alternative != json!({ "type": "null" }));
        if let [Value::Object(only)] = &mut alternatives[..] {
            only.append(members);
            *members = std::mem::take(only);
        } else {
            members.insert("anyOf".to_owned(), alternatives.into());
        }
    }
}

/// The variants of an enum as choices, with their titles or doc comments as titles.
fn titled(variants: Value) -> Value {
    let Value::Array(variants) = variants else {
        return variants;
    };
    let choices = variants.iter().flat_map(|variant| {
        let title = variant.get("title").or_else(|| variant.get("description"));
        // schemars puts variants without title and doc comment together, in one `enum`.
        let together = variant.get("enum").and_then(Value::as_array);
        let values = variant.get("const").into_iter();
        let values = values.chain(together.into_iter().flatten());
        values.map(move |value| json!({ "const": value, "title": title.unwrap_or(value) }))
    });
    choices.collect()
}

/// ELIC-07: a form is an object of strings, numbers, booleans and choices.
fn check_flat(schema: &Value) -> Result<(), AskError> {
    let unaskable = |reason: String| Err(AskError::Unaskable(reason));
    if !has_type(schema, "object") {
        return unaskable("a form must be an object".to_owned());
    }
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return unaskable("a form must have fields".to_owned());
    };
    for (name, field) in fields {
        if !is_plain(field) {
            return unaskable(format!(
                "the field {name:?} is no string, number, boolean or choice"
            ));
        }
    }
    Ok(())
}

fn is_plain(field: &Value) -> bool {
    let is_choice = |items: &Value| items.get("enum").is_some() || items.get("anyOf").is_some();
    let primitive = ["string", "number", "integer", "boolean"];
    primitive.iter().any(|name| has_type(field, name))
        || has_type(field, "array") && field.get("items").is_some_and(is_choice)
}

fn has_type(schema: &Value, name: &str) -> bool {
    schema.get("type").and_then(Value::as_str) == Some(name)
}

#[cfg(test)]
mod tests;
