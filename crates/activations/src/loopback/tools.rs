//! Permissions as tools.

use std::time::Duration;

use plexus_service::{Builder, ClientCapability, Context, Fault, Json, Raw, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::LoopbackError;
use super::permissions::{Decision, PATIENCE, Pending, Permissions, Request};
use super::question;
use crate::hints::{changing, reading};
use crate::json::encoded;
use crate::names::Names;

/// Adds the tools with which permissions are asked for and given.
pub fn loopback(builder: Builder, names: Names, permissions: &Permissions) -> Builder {
    let tool = |method| names.tool("loopback", method);
    let [asking, answering, listing, waiting] = [(); 4].map(|()| permissions.clone());
    builder
        .tool(
            changing(tool("permit"))
                .title("Ask for permission")
                .description(
                    "Ask whether an agent may use a tool, and wait for the answer. Meant for \
                     agents that run without a terminal: name this as their permission prompt tool",
                ),
            move |arguments, context| permit(asking.clone(), arguments, context),
        )
        .tool(
            changing(tool("respond"))
                .title("Answer a request for permission")
                .description("Allow or deny what an agent asked for"),
            move |arguments, _: Context| respond(answering.clone(), arguments),
        )
        .tool(
            reading(tool("pending"))
                .title("List requests for permission")
                .description("List what agents ask for and nobody has answered yet, oldest first"),
            move |arguments, _: Context| pending(listing.clone(), arguments),
        )
        .tool(
            changing(tool("wait"))
                .title("Wait for a request for permission")
                .description(
                    "Wait until an agent asks for permission, and list what is pending; if \
                     ask_user is true, ask the user of this client, and answer for them",
                ),
            move |arguments, context| wait(waiting.clone(), arguments, context),
        )
}

/// The answer to an agent: exactly what Claude Code expects, as text.
pub(crate) fn answer(decision: Decision, input: Raw) -> Result<String, ToolError> {
    #[derive(Serialize)]
    #[serde(tag = "behavior", rename_all = "lowercase")]
    enum Answer {
        Allow {
            #[serde(rename = "updatedInput")]
            updated_input: Raw,
        },
        Deny {
            message: String,
        },
    }
    let answer = match decision {
        Decision::Allow { updated_input } => Answer::Allow {
            updated_input: updated_input.unwrap_or(input),
        },
        Decision::Deny { message } => Answer::Deny { message },
    };
    Ok(encoded(&answer)?.as_str().to_owned())
}

/// What an agent gives. Agents of the future may say more, which is no reason to refuse them.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Permit {
    /// The tool that the agent wants to use
    pub(crate) tool_name: String,
    /// What it wants to give the tool
    #[schemars(with = "Map<String, Value>")]
    pub(crate) input: Raw,
    /// The id of that use
    pub(crate) tool_use_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Respond {
    /// Which request is answered
    approval_id: String,
    /// Whether the agent may
    approve: bool,
    /// What to tell the agent if it may not
    message: Option<String>,
    /// What the tool is to be given instead, if the agent may
    #[schemars(with = "Option<Map<String, Value>>")]
    updated_input: Option<Raw>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfSession {
    /// Only requests of this session
    session_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Only requests of this session
    session_id: Option<String>,
    /// For how many milliseconds to wait
    #[serde(default = "a_minute")]
    #[schemars(range(min = 0, max = 300_000))]
    timeout_ms: u64,
    /// Whether to ask the user of this client
    #[serde(default)]
    ask_user: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Answered {
    /// The request
    approval_id: String,
    /// Whether the agent may
    approved: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct List {
    /// What is to be answered, the oldest first
    pending: Vec<Pending>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Waited {
    /// What is to be answered, the oldest first
    pending: Vec<Pending>,
    /// What the user answered
    answered: Vec<Answered>,
}

async fn permit(permissions: Permissions, permit: Permit, context: Context) -> ToolResult<String> {
    let Permit {
        tool_name,
        input,
        tool_use_id,
    } = permit;
    let request = Request {
        session_id: None,
        tool_name,
        tool_use_id,
        input: input.clone(),
    };
    let decided = permissions.permit(request, PATIENCE, Some(&context), |_| ());
    answer(decided.await?, input)
}

async fn respond(permissions: Permissions, respond: Respond) -> ToolResult<Json<Answered>> {
    let Respond {
        approval_id,
        approve,
        message,
        updated_input,
    } = respond;
    let decision = if approve {
        Decision::Allow { updated_input }
    } else {
        question::denied(message)
    };
    permissions.respond(approval_id.clone(), decision).await?;
    Ok(Json(Answered {
        approval_id,
        approved: approve,
    }))
}

async fn pending(permissions: Permissions, filter: OfSession) -> ToolResult<Json<List>> {
    let pending = permissions.pending(filter.session_id).await?;
    Ok(Json(List { pending }))
}

async fn wait(permissions: Permissions, wait: Wait, context: Context) -> ToolResult<Json<Waited>> {
    let Wait {
        session_id,
        timeout_ms,
        ask_user,
    } = wait;
    if ask_user && !context.supports(ClientCapability::ElicitationForm) {
        return Err(Fault::MissingCapability(ClientCapability::ElicitationForm).into());
    }
    let patience = Duration::from_millis(timeout_ms);
    let mut pending = permissions.wait(session_id, patience).await?;
    let mut answered = Vec::new();
    if ask_user {
        let requests = std::mem::take(&mut pending);
        for request in requests {
            match question::ask(&request, &context).await? {
                Some(decision) => {
                    let approval_id = request.approval_id.clone();
                    let approved = matches!(decision, Decision::Allow { .. });
                    match permissions.respond(approval_id.clone(), decision).await {
                        Ok(()) => answered.push(Answered {
                            approval_id,
                            approved,
                        }),
                        // Somebody else was faster.
                        Err(LoopbackError::Over(_) | LoopbackError::NotFound(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                None => pending.push(request),
            }
        }
    }
    Ok(Json(Waited { pending, answered }))
}

fn a_minute() -> u64 {
    60_000
}
