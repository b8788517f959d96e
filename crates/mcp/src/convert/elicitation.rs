//! Questions to the human.

use plexus_wire::{Object, Raw};
use serde::Deserialize;

use super::Unrepresentable;
use super::edit::edited;
use crate::messages::to_raw;
use crate::{ElicitationModes, Features};

/// The params of `elicitation/create`.
///
/// `mint_id` makes the `elicitationId` that one revision demands for URLs; it is called only if the
/// params have none.
pub fn elicitation_params(
    params: &Raw,
    features: &Features,
    mint_id: impl FnOnce() -> String,
) -> Result<Raw, Unrepresentable> {
    #[derive(Deserialize)]
    struct Mode {
        mode: Option<String>,
    }
    let is_url = params
        .decode()
        .is_ok_and(|Mode { mode }| mode.as_deref() == Some("url"));
    match features.elicitation {
        ElicitationModes::Absent => return Err(Unrepresentable::Elicitation),
        ElicitationModes::Form if is_url => return Err(Unrepresentable::UrlElicitation),
        _ => {}
    }
    let fields = if features.rich_elicitation_forms {
        None
    } else {
        plain_fields(params)?
    };
    Ok(edited(params, |params| {
        if let Some(fields) = fields {
            params.map("requestedSchema", |schema| {
                edited(schema, |schema| schema.set("properties", fields))
            });
        }
        match features.elicitation {
            ElicitationModes::Form => {
                params.remove("mode");
            }
            ElicitationModes::FormAndUrlWithId if is_url => {
                if params.get("elicitationId").is_none() {
                    params.set("elicitationId", to_raw(&mint_id()));
                }
            }
            _ => {
                params.remove("elicitationId");
            }
        }
    }))
}

/// The fields of a form as the first revision with forms knows them; `None` if they are that already.
fn plain_fields(params: &Raw) -> Result<Option<Raw>, Unrepresentable> {
    let member = |raw: &Raw, key: &str| Object::parse(raw).ok()?.remove(key);
    let fields = member(params, "requestedSchema").and_then(|schema| member(&schema, "properties"));
    let Some(Ok(mut fields)) = fields.map(|fields| Object::parse(&fields)) else {
        return Ok(None);
    };
    let mut changed = Vec::new();
    for (name, field) in fields.iter() {
        let too_rich = || Unrepresentable::FormField(name.to_owned());
        let Some(known) = Field::read(field) else {
            continue;
        };
        if known.r#type.as_deref() == Some("array") {
            return Err(too_rich());
        }
        if let Some(choices) = known.one_of {
            let choices: Vec<Choice> = choices.decode().ok().ok_or_else(too_rich)?;
            changed.push((name.to_owned(), with_plain_choices(field, choices)));
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    for (name, field) in changed {
        fields.set(name, field);
    }
    Ok(Some(fields.to_raw()))
}

/// What must be known of a form's field to lower it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    r#type: Option<String>,
    one_of: Option<Raw>,
}

impl Field {
    fn read(field: &Raw) -> Option<Self> {
        field.decode().ok()
    }
}

/// One of the answers that a field offers.
#[derive(Deserialize)]
struct Choice {
    r#const: String,
    title: String,
}

/// Titled choices in their older form: values and names in two lists.
fn with_plain_choices(field: &Raw, choices: Vec<Choice>) -> Raw {
    let (values, names): (Vec<_>, Vec<_>) = choices
        .into_iter()
        .map(|choice| (choice.r#const, choice.title))
        .unzip();
    edited(field, |field| {
        field.remove("oneOf");
        field.set("enum", to_raw(&values));
        field.set("enumNames", to_raw(&names));
    })
}
