//! Questions to the user.

use plexus_mcp_wire::{Object, Raw};
use serde::Deserialize;

use super::Unrepresentable;
use super::edit::edited;
use crate::messages::to_raw;
use crate::{ElicitationModes, Features};

mod choices;
mod field;
mod form;

pub use form::{InvalidAnswer, LoweredForm};

/// An elicitation in the form of one revision.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "the request and the way back")]
pub struct LoweredElicitation {
    /// The params of `elicitation/create`.
    pub params: Raw,
    /// How the answer becomes one to the original form; `None` if the form is the original one.
    pub form: Option<LoweredForm>,
}

/// Lowers the params of `elicitation/create` to the revision with `features`.
///
/// A revision without elicitation is asked like the first revision that has it: the client declared
/// the capability, so it knows the request.
///
/// `mint_id` makes the `elicitationId` that one revision demands for URLs; it is called only if the
/// params have none.
///
/// # Errors
/// The revision has no URL elicitation, or a field of the form cannot be lowered.
pub fn elicitation(
    params: &Raw,
    features: &Features,
    mint_id: impl FnOnce() -> String,
) -> Result<LoweredElicitation, Unrepresentable> {
    #[derive(Deserialize)]
    struct ModeMember {
        mode: Option<String>,
    }
    let is_url = params
        .decode()
        .is_ok_and(|ModeMember { mode }| mode.as_deref() == Some("url"));
    let has_forms_only = matches!(
        features.elicitation,
        ElicitationModes::Absent | ElicitationModes::Form
    );
    if has_forms_only && is_url {
        return Err(Unrepresentable::UrlElicitation);
    }
    let lowered = match requested_schema(params) {
        Some(schema) if !features.rich_elicitation_forms && !is_url => form::lowered(&schema)?,
        _ => None,
    };
    let (schema, form) = lowered.unzip();
    let params = edited(params, |params| {
        if let Some(schema) = schema {
            params.set("requestedSchema", schema);
        }
        match features.elicitation {
            ElicitationModes::Absent | ElicitationModes::Form => {
                params.remove("mode");
            }
            ElicitationModes::FormAndUrlWithId if is_url => {
                if params.get("elicitationId").is_none() {
                    params.set("elicitationId", to_raw(&mint_id()));
                }
            }
            ElicitationModes::FormAndUrlWithId | ElicitationModes::FormAndUrl => {
                params.remove("elicitationId");
            }
        }
    });
    Ok(LoweredElicitation { params, form })
}

fn requested_schema(params: &Raw) -> Option<Raw> {
    Object::parse(params).ok()?.remove("requestedSchema")
}

#[cfg(test)]
mod tests;
