//! The question to a user.

use plexus_service::{AskError, ClientCapability, Context, ElicitAction, ElicitParams, Raw};
use serde::Deserialize;
use serde_json::json;

use super::permissions::{Decision, Pending};

/// How many characters of the input are shown.
const SHOWN: usize = 2000;

/// Puts the question to the user of `asked`. `None` if there is nobody to be asked, or no answer:
/// an agent without a terminal closes questions by itself.
pub(super) async fn put(pending: &Pending, asked: Option<&Context>) -> Option<Decision> {
    let asked = asked?;
    if !asked.supports(ClientCapability::ElicitationForm) {
        return None;
    }
    match ask(pending, asked).await {
        Ok(decision) => decision,
        Err(error) => {
            tracing::debug!(%error, "a user could not be asked for a permission");
            None
        }
    }
}

/// The same, of a user who must be asked.
pub(super) async fn ask(pending: &Pending, asked: &Context) -> Result<Option<Decision>, AskError> {
    let form = ElicitParams::form(message(pending), choices()?);
    let answer = asked.elicit(form).await?;
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
    answer: Answer,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Deny,
}

impl From<Form> for Decision {
    fn from(form: Form) -> Self {
        match form.answer {
            Answer::Allow => Self::Allow {
                updated_input: None,
            },
            Answer::Deny => denied(form.message),
        }
    }
}

/// What an agent is told whom a person denied something.
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
    let shown: String = input.chars().take(SHOWN).map(visible).collect();
    let more = match input.chars().count().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("… and {more} characters more"),
    };
    let session = pending.session_id.as_ref();
    let session = session.map_or_else(String::new, |id| format!(" in the session {id:?}"));
    let tool = &pending.tool_name;
    format!("May an agent{session} use its tool {tool:?}?\nInput: {shown}{more}")
}

/// Characters that are not seen, or that change how others are, could make the input look like
/// something else.
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
