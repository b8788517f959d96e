//! The form that asks a user for a permission.

use plexus_mcp_core::{AskError, ClientCapability, Context, ElicitAction, ElicitParams, Raw};
use serde::Deserialize;
use serde_json::json;

use super::permissions::{Decision, Pending};

/// The maximum number of characters of the input that are shown.
const MAX_SHOWN_CHARS: usize = 2000;

/// Asks the user of `caller`. `None` if the client does not support elicitation, or if the user gave
/// no answer: an agent without a terminal cancels elicitations by itself.
pub(super) async fn ask_if_supported(
    pending: &Pending,
    caller: Option<&Context>,
) -> Option<Decision> {
    let caller = caller?;
    if !caller.supports(ClientCapability::ElicitationForm) {
        return None;
    }
    match ask(pending, caller).await {
        Ok(decision) => decision,
        Err(error) => {
            tracing::debug!(%error, "cannot ask the user for a permission");
            None
        }
    }
}

/// Like [`ask_if_supported`], for a client that must support elicitation.
pub(super) async fn ask(pending: &Pending, caller: &Context) -> Result<Option<Decision>, AskError> {
    let form = ElicitParams::form(message(pending), choices()?);
    let answer = caller.elicit(form).await?;
    Ok(match answer.action {
        ElicitAction::Accept => {
            let content = answer.content.unwrap_or_else(Raw::empty_object);
            let form = content.decode::<Form>();
            let form = form.map_err(|error| AskError::Malformed(error.to_string()))?;
            Some(form.into())
        }
        ElicitAction::Decline => Some(denied(None)),
        ElicitAction::Cancel => None,
    })
}

#[derive(Deserialize)]
struct Form {
    answer: PermissionChoice,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PermissionChoice {
    Allow,
    Deny,
}

impl From<Form> for Decision {
    fn from(form: Form) -> Self {
        match form.answer {
            PermissionChoice::Allow => Self::Allow {
                updated_input: None,
            },
            PermissionChoice::Deny => denied(form.message),
        }
    }
}

/// The decision for a request that the user denied.
pub(super) fn denied(message: Option<String>) -> Decision {
    let message = message.filter(|message| !message.trim().is_empty());
    Decision::Deny {
        message: message.unwrap_or_else(|| "the user does not allow this".to_owned()),
    }
}

fn choices() -> Result<Raw, AskError> {
    let answers = json!([
        { "const": "allow", "title": "Allow, this once" },
        { "const": "deny", "title": "Deny" },
    ]);
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": { "type": "string", "title": "Answer", "oneOf": answers },
            "message": { "type": "string", "title": "What to tell the agent if it is denied" },
        },
        "required": ["answer"],
    });
    Raw::encode(&schema).map_err(|error| AskError::Unaskable(error.to_string()))
}

fn message(pending: &Pending) -> String {
    let input = pending.input.as_str();
    let shown: String = input.chars().take(MAX_SHOWN_CHARS).map(visible).collect();
    let more = match input.chars().count().saturating_sub(MAX_SHOWN_CHARS) {
        0 => String::new(),
        more => format!("… and {more} characters more"),
    };
    let session = pending.session_id.as_ref();
    let session = session.map_or_else(String::new, |id| format!(" in the session {id:?}"));
    let tool = &pending.tool_name;
    format!("May an agent{session} use its tool {tool:?}?\nInput: {shown}{more}")
}

/// Replaces a character that is invisible or changes how others are displayed. It could make the
/// input look like something else.
fn visible(c: char) -> char {
    let deceives = c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e0000}'..='\u{e007f}');
    if deceives {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}
