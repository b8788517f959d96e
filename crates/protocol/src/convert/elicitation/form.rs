//! Forms with fields that the first revision with forms lacks.

use plexus_mcp_wire::{Object, Raw};

use super::field::{self, LoweredField};
use crate::convert::Unrepresentable;
use crate::convert::edit::edited;
use crate::messages::{ElicitAction, ElicitResult};
use crate::schema::Validator;

/// A form with lowered fields: makes answers to it answers to the original form.
#[derive(Debug, Clone)]
pub struct LoweredForm {
    fields: Vec<(String, LoweredField)>,
    required: Vec<String>,
    /// Of the original schema.
    validator: Validator,
}

/// Why an answer to a lowered form does not fit the original form, as a text for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidAnswer(String);

impl LoweredForm {
    /// The answer that the asking server gets for `answer`, an `ElicitResult`: accepted content has
    /// the types of the original form and validates against its schema.
    ///
    /// # Errors
    /// The answer does not fit the original form.
    pub fn raise(&self, answer: &Raw) -> Result<Raw, InvalidAnswer> {
        let ElicitResult { action, content } =
            answer.decode().map_err(|error: serde_json::Error| {
                InvalidAnswer(format!("the answer cannot be read: {error}"))
            })?;
        if action != ElicitAction::Accept {
            return Ok(answer.clone());
        }
        let content = content.unwrap_or_else(Raw::empty_object);
        let content = self.raised_content(&content)?;
        let validated = self.validator.validate(&content);
        validated.map_err(|violations| InvalidAnswer(violations.to_string()))?;
        Ok(edited(answer, |answer| answer.set("content", content)))
    }

    fn raised_content(&self, content: &Raw) -> Result<Raw, InvalidAnswer> {
        let mut content = Object::parse(content)
            .map_err(|error| InvalidAnswer(format!("the answer cannot be read: {error}")))?;
        for (name, field) in &self.fields {
            let Some(answer) = content.get(name) else {
                continue;
            };
            let is_required = self.required.contains(name);
            let raised = field
                .raise(answer, is_required)
                .map_err(|reason| InvalidAnswer(format!("{name}: {reason}")))?;
            match raised {
                Some(value) => content.set(name.clone(), value),
                None => content.remove(name),
            };
        }
        Ok(content.to_raw())
    }
}

impl InvalidAnswer {
    /// The params of a lowered elicitation with the reason in the message, to ask again.
    pub fn with_reason_in_message(&self, params: &Raw) -> Raw {
        edited(params, |params| {
            params.map("message", |message| {
                let message = message.text().unwrap_or_default();
                let again = format!("{message}\n\nThe last answer was not accepted: {self}");
                Raw::string(&again)
            });
        })
    }
}

/// The schema of a form lowered to 2025-06-18, with the conversion of its answers; `None` if there
/// is nothing to lower.
pub(super) fn lowered(schema: &Raw) -> Result<Option<(Raw, LoweredForm)>, Unrepresentable> {
    let Ok(form) = Object::parse(schema) else {
        return Ok(None);
    };
    let Some(Ok(mut properties)) = form.get("properties").map(Object::parse) else {
        return Ok(None);
    };
    let mut fields = Vec::new();
    let mut schemas = Vec::new();
    for (name, field) in properties.iter() {
        let lowered = field::lowered(field).map_err(|reason| Unrepresentable::FormField {
            name: name.to_owned(),
            reason,
        })?;
        if let Some((schema, field)) = lowered {
            schemas.push((name.to_owned(), schema));
            fields.push((name.to_owned(), field));
        }
    }
    if fields.is_empty() {
        return Ok(None);
    }
    for (name, schema) in schemas {
        properties.set(name, schema);
    }
    let required = form.get("required").and_then(|names| names.decode().ok());
    let form = LoweredForm {
        fields,
        required: required.unwrap_or_default(),
        validator: Validator::compile_form(schema)
            .map_err(|error| Unrepresentable::FormSchema(error.to_string()))?,
    };
    let schema = edited(schema, |schema| {
        schema.set("properties", properties.to_raw());
    });
    Ok(Some((schema, form)))
}
