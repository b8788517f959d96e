//! The question to the user whether a tool may be called.

use plexus_mcp_core::{AskError, EventSender, Question};
use plexus_mcp_protocol::messages::{ElicitAction, ElicitParams, ElicitResult};
use plexus_mcp_wire::Raw;
use serde::Deserialize;
use serde_json::json;

use super::arguments::plain_json;
use super::{Reason, ToolFacts};

/// The most characters of the arguments that are shown.
const MAX_SHOWN_CHARS: usize = 2000;

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ApprovalAnswer {
    Once,
    Always,
    No,
}

/// Asks whether `tool` may be called with `arguments`. `None` if the user dismisses the question,
/// or the client could not show it.
pub(super) async fn put(
    tool: &ToolFacts<'_>,
    arguments: &Raw,
    reason: Reason<'_>,
    events: &EventSender,
) -> Result<Option<ApprovalAnswer>, AskError> {
    let form = ElicitParams::form(message(tool, arguments, reason), choices()?);
    let question = Raw::encode(&form).map_err(unaskable)?;
    let answer = events.ask(None, Question::Elicit(question)).await?;
    let ElicitResult { action, content } = answer.decode().map_err(malformed)?;
    match action {
        ElicitAction::Accept => {
            let content = content.unwrap_or_else(Raw::empty_object);
            let Form { answer } = content.decode().map_err(malformed)?;
            Ok(Some(answer))
        }
        ElicitAction::Decline => Ok(Some(ApprovalAnswer::No)),
        ElicitAction::Cancel => Ok(None),
    }
}

#[derive(Deserialize)]
struct Form {
    answer: ApprovalAnswer,
}

fn choices() -> Result<Raw, AskError> {
    let answers = json!([
        { "const": "once", "title": "Yes, this once" },
        { "const": "always", "title": "Yes, and do not ask again while the tool stays as it is" },
        { "const": "no", "title": "No" },
    ]);
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "title": "Answer", "oneOf": answers } },
        "required": ["answer"],
    });
    Raw::encode(&schema).map_err(unaskable)
}

fn message(tool: &ToolFacts<'_>, arguments: &Raw, reason: Reason<'_>) -> String {
    let (name, server) = (tool.shown(), tool.server());
    let hint = if tool.is_destructive() {
        " Its server says that it may destroy something."
    } else if tool.is_harmless() {
        " Its server says that it changes nothing."
    } else {
        ""
    };
    let json = plain_json(arguments).unwrap_or_else(|| arguments.as_str().to_owned());
    let shown: String = json.chars().take(MAX_SHOWN_CHARS).map(visible).collect();
    let more = match json.chars().count().saturating_sub(MAX_SHOWN_CHARS) {
        0 => String::new(),
        more => format!("… and {more} characters more"),
    };
    format!(
        "May {name:?} of the server {server:?} be called?{hint}\n\
         Arguments: {shown}{more}\n\
         Asked because of {reason}."
    )
}

/// Replaces invisible characters and control characters, which could make the arguments look like
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

#[expect(
    clippy::needless_pass_by_value,
    reason = "this is the shape that map_err takes"
)]
fn unaskable(error: serde_json::Error) -> AskError {
    AskError::Unaskable(error.to_string())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "this is the shape that map_err takes"
)]
fn malformed(error: serde_json::Error) -> AskError {
    AskError::Malformed(error.to_string())
}
