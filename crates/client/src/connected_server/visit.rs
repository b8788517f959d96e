//! URL elicitations that a legacy server requires before a call (TRANSLATION §5.5).

use std::time::Duration;

use plexus_mcp_core::{AskError, Call, Question};
use plexus_mcp_protocol::messages::{CallToolResult, ClientCapability, ElicitAction, ElicitResult};
use plexus_mcp_protocol::{Era, Fault, convert, method};
use plexus_mcp_wire::{Object, Raw, RpcError};

use super::Session;
use crate::hop_metadata;

/// How long to wait for the server to notice the visits before the call is repeated.
const VISIT_NOTICED_TIMEOUT: Duration = Duration::from_secs(20);

/// Asks the user to visit the URLs that `error` names; then the call can be sent again. Returns the
/// result of the call if the user declines.
pub(super) async fn required(
    session: &Session,
    call: &Call,
    error: RpcError,
) -> Result<Option<Raw>, Fault> {
    let pages = pages(&error);
    if pages.is_empty() {
        return Err(Fault::Upstream(error));
    }
    if !call.peer().supports(ClientCapability::ElicitationUrl) {
        // A handshake-era client may handle the error itself.
        return Err(match call.peer().revision.era() {
            Era::Stateless => Fault::MissingCapability(ClientCapability::ElicitationUrl),
            Era::Handshake => Fault::Upstream(error),
        });
    }
    for page in &pages {
        let question = Question::Elicit(convert::raised_elicitation(page));
        let answer = match call.events.ask(None, question).await {
            Ok(answer) => answer.decode::<ElicitResult>().ok(),
            Err(AskError::Gone) => return Err(Fault::Cancelled),
            Err(_) => None,
        };
        if !answer.is_some_and(|answer| answer.action == ElicitAction::Accept) {
            return declined(call);
        }
    }
    let ids: Vec<String> = pages
        .iter()
        .filter_map(|page| text(page, "elicitationId"))
        .collect();
    // If the server does not report the visits in time, the call is sent again anyway.
    drop(tokio::time::timeout(VISIT_NOTICED_TIMEOUT, session.visits(&ids)).await);
    Ok(None)
}

fn declined(call: &Call) -> Result<Option<Raw>, Fault> {
    const DECLINED: &str = "Authorization was declined";
    if &*call.method == method::TOOLS_CALL {
        return Ok(Some(CallToolResult::error(DECLINED).to_raw()));
    }
    Err(Fault::Internal(DECLINED.to_owned()))
}

/// The elicitations of a `-32042` that are to be put to the user.
fn pages(error: &RpcError) -> Vec<Raw> {
    let data = error
        .data
        .as_ref()
        .and_then(|data| Object::parse(data).ok());
    let elicitations = data.and_then(|data| data.get("elicitations")?.decode::<Vec<Raw>>().ok());
    let with_mode = |page: &Raw| {
        let mut object = Object::parse(page).ok()?;
        object.contains("url").then_some(())?;
        object.set("mode", hop_metadata::json("url"));
        Some(object.to_raw())
    };
    let elicitations = elicitations.unwrap_or_default();
    elicitations.iter().filter_map(with_mode).collect()
}

fn text(object: &Raw, member: &str) -> Option<String> {
    Object::parse(object).ok()?.get(member)?.decode().ok()
}
