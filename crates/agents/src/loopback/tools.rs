//! The tools `loopback.*`.

use std::time::Duration;

use plexus_mcp_core::{
    Builder, ClientCapability, Context, Fault, Json, Raw, ToolError, ToolResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::LoopbackError;
use super::permissions::{ANSWER_TIMEOUT, Decision, Pending, Permissions, Request};
use super::question;
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::support::to_json;
use plexus_mcp_builtins::support::{non_destructive, read_only};

/// Adds the tools with which agents request permissions and clients answer.
pub fn loopback(builder: Builder, names: Names, permissions: &Permissions) -> Builder {
    let tool = |method| names.tool("loopback", method);
    let [asking, answering, listing, waiting] = [(); 4].map(|()| permissions.clone());
    builder
        .tool(
            non_destructive(tool("permit"))
                .title("Ask for permission")
                .description(
                    "Ask whether an agent may use a tool, and wait for the answer. Meant for \
                     agents that run without a terminal: name this as their permission prompt tool",
                ),
            move |arguments, context| permit(asking.clone(), arguments, context),
        )
        .tool(
            non_destructive(tool("respond"))
                .title("Answer a request for permission")
                .description("Allow or deny a permission request of an agent"),
            move |arguments, _: Context| respond(answering.clone(), arguments),
        )
        .tool(
            read_only(tool("pending"))
                .title("List requests for permission")
                .description("List permission requests without an answer, oldest first"),
            move |arguments, _: Context| pending(listing.clone(), arguments),
        )
        .tool(
            non_destructive(tool("wait"))
                .title("Wait for a request for permission")
                .description(
                    "Wait until an agent asks for permission, and list what is pending; if \
                     ask_user is true, ask the user of this client, and answer for them",
                ),
            move |arguments, context| wait(waiting.clone(), arguments, context),
        )
}

/// The answer to an agent, as text in the format that Claude Code expects.
pub(crate) fn answer(decision: Decision, input: Raw) -> Result<String, ToolError> {
    #[derive(Serialize)]
    #[serde(tag = "behavior", rename_all = "lowercase")]
    enum PermissionResult {
        Allow {
            #[serde(rename = "updatedInput")]
            updated_input: Raw,
        },
        Deny {
            message: String,
        },
    }
    let answer = match decision {
        Decision::Allow { updated_input } => PermissionResult::Allow {
            updated_input: updated_input.unwrap_or(input),
        },
        Decision::Deny { message } => PermissionResult::Deny { message },
    };
    Ok(to_json(&answer)?.as_str().to_owned())
}

/// Arguments that an agent sends. Unknown members are accepted, for newer agents.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Permit {
    /// The tool that the agent wants to call
    pub(crate) tool_name: String,
    /// The input of the tool
    #[schemars(with = "Map<String, Value>")]
    pub(crate) input: Raw,
    /// The id of the tool call
    pub(crate) tool_use_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Respond {
    /// The id of the request
    approval_id: String,
    /// Whether to allow the tool call
    approve: bool,
    /// The reason of a denial, which the agent reads
    message: Option<String>,
    /// The input to use instead of the requested one, if the call is allowed
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
    /// How long to wait, in milliseconds
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
    /// The id of the request
    approval_id: String,
    /// Whether the tool call was allowed
    approved: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct List {
    /// The requests without an answer, the oldest first
    pending: Vec<Pending>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Waited {
    /// The requests without an answer, the oldest first
    pending: Vec<Pending>,
    /// The requests that the user of this client answered
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
    let decided = permissions.permit(request, ANSWER_TIMEOUT, Some(&context), |_| ());
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
    let timeout = Duration::from_millis(timeout_ms);
    let mut pending = permissions.wait(session_id, timeout).await?;
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
                        // Another client answered first.
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
