//! Polling subscriptions: tools and resources that are read at an interval.

use std::sync::{Arc, Weak};
use std::time::Duration;

use plexus_mcp_core::{Call, Context, EventSender, Fault, Json, Peer, ToolError, ToolResult};
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::{Object, Raw};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::NAME;
use super::arguments::{PollArguments, PollKind, Subscribed};
use super::contents::uri_params;
use super::registry::SubscriptionRegistry;
use super::subscription::{ManagedSubscription, Target, Thing};
use crate::hub::Hub;
use crate::policy::Permit;

/// Polling stops after so many failures in a row.
const MAX_CONSECUTIVE_FAILURES: u32 = 5;
/// The longest error text of a server that is reported, in bytes.
const MAX_ERROR_BYTES: usize = 500;

pub(super) async fn subscribe(
    registry: Arc<SubscriptionRegistry>,
    arguments: PollArguments,
    context: Context,
) -> ToolResult<Json<Subscribed>> {
    let hub = registry.hub()?;
    let events = context.events();
    let peer = Arc::clone(events.peer());
    let interval = arguments.interval_ms;
    let reason = arguments.reason.clone();
    let target = target(&hub, &peer, arguments)?;
    let id = if let Some(id) = registry.existing(&peer, &target) {
        id
    } else {
        registry.has_room(&peer)?;
        let cancel = context.cancellation().child_token();
        let permit = permit(&hub, &target, events, cancel.clone()).await?;
        let first = read_value(&hub, &target, &permit, events.clone(), cancel).await;
        let mut caller = Peer::clone(&peer);
        caller.capabilities = ClientCapabilities::none();
        let polling = Polling {
            registry: Arc::downgrade(&registry),
            caller: Arc::new(caller),
            permit,
            known: digest(&first.map_err(ToolError::from)?),
        };
        let interval = Duration::from_millis(interval);
        registry.keep(&peer, target, reason, |subscription| {
            polling.run(subscription, interval)
        })?
    };
    Ok(Json(Subscribed {
        subscribed: true,
        subscription_id: id,
    }))
}

/// The target of a subscription, with the server's own names.
fn target(hub: &Hub, peer: &Peer, arguments: PollArguments) -> Result<Target, ToolError> {
    let server = &arguments.server;
    if server == NAME {
        return Err(format!("the tools of {NAME:?} itself are not polled").into());
    }
    let member = hub.server(server)?;
    let thing = match (arguments.kind, arguments.tool_name, arguments.uri) {
        (PollKind::Tool, Some(tool), None) => {
            let own = hub.own_tool(peer, &member.name, &tool);
            let unknown =
                || format!("the server {server:?} has no tool {tool:?} that you can call");
            Thing::Tool {
                tool_name: own.ok_or_else(unknown)?,
                arguments: arguments.arguments.unwrap_or_else(Raw::empty_object),
            }
        }
        (PollKind::Resource, None, Some(uri)) if arguments.arguments.is_none() => Thing::Resource {
            uri: hub.own_uri(server, &uri),
        },
        (PollKind::Tool, ..) => {
            return Err("to poll a tool, give its toolName, and no uri".into());
        }
        (PollKind::Resource, ..) => {
            return Err("to poll a resource, give its uri, and no toolName or arguments".into());
        }
    };
    Ok(Target {
        server: member.name.to_string(),
        thing,
        interval_ms: Some(arguments.interval_ms),
    })
}

/// Permission to call the polled tool, which the user may be asked for (C27).
async fn permit(
    hub: &Hub,
    target: &Target,
    events: &EventSender,
    cancel: CancellationToken,
) -> Result<Permit, ToolError> {
    if matches!(target.thing, Thing::Resource { .. }) {
        return Ok(Permit::default());
    }
    let member = hub.server(&target.server)?;
    let call = request(target, events.clone(), cancel);
    hub.permit(&call, &member).await?.map_err(ToolError::Failed)
}

/// Why a poll failed.
enum Failure {
    /// The call is no longer permitted.
    Forbidden(String),
    /// The call failed.
    Failed(String),
}

impl Failure {
    fn failed(mut why: String) -> Self {
        if why.len() > MAX_ERROR_BYTES {
            why.truncate(why.floor_char_boundary(MAX_ERROR_BYTES));
            why.push('…');
        }
        Self::Failed(why)
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Forbidden(why) | Failure::Failed(why) => Self::Failed(why),
        }
    }
}

/// Reads the current value, without members that change although the value does not.
async fn read_value(
    hub: &Hub,
    target: &Target,
    permit: &Permit,
    events: EventSender,
    cancel: CancellationToken,
) -> Result<Raw, Failure> {
    let failed = |fault: Fault| Failure::failed(fault.to_string());
    let member = hub.server(&target.server).map_err(Failure::failed)?;
    let call = request(target, events.naming(&member.name), cancel);
    if let Thing::Tool { tool_name, .. } = &target.thing {
        if hub.own_tool(call.peer(), &member.name, tool_name).is_none() {
            let gone = format!("the server {:?} has no such tool", target.server);
            return Err(Failure::failed(gone));
        }
        let revoked = hub.revoked(permit, &call, &member).map_err(failed)?;
        if let Some(why) = revoked {
            return Err(Failure::Forbidden(why));
        }
    }
    let result = hub.run_on_member(&member, call).await.map_err(failed)?;
    let malformed = |error| Failure::failed(format!("its answer is malformed: {error}"));
    let mut answer = Object::parse(&result).map_err(malformed)?;
    answer.remove("_meta");
    let is_error = answer.get("isError").map(Raw::as_str) == Some("true");
    let answer = answer.to_raw();
    if is_error {
        return Err(Failure::failed(text_of(&answer)));
    }
    Ok(answer)
}

/// The text blocks of a tool result.
fn text_of(answer: &Raw) -> String {
    #[derive(serde::Deserialize)]
    struct TextContent {
        content: Vec<Block>,
    }
    #[derive(serde::Deserialize)]
    struct Block {
        text: Option<String>,
    }
    let Ok(TextContent { content }) = answer.decode() else {
        return "it failed without an error text".to_owned();
    };
    let texts: Vec<_> = content.into_iter().filter_map(|block| block.text).collect();
    texts.join(" ")
}

fn request(target: &Target, events: EventSender, cancel: CancellationToken) -> Call {
    match &target.thing {
        Thing::Resource { uri } => {
            Call::new(method::RESOURCES_READ, uri_params(uri), events, cancel)
        }
        Thing::Tool {
            tool_name,
            arguments,
        } => {
            let mut params = Object::new();
            params.set("name", Raw::string(tool_name));
            params.set("arguments", arguments.clone());
            Call::new(method::TOOLS_CALL, params, events, cancel)
        }
    }
}

fn digest(answer: &Raw) -> [u8; 32] {
    Sha256::digest(answer.as_bytes()).into()
}

struct Polling {
    registry: Weak<SubscriptionRegistry>,
    /// The caller. It cannot be asked questions, because no call of its own is in flight.
    caller: Arc<Peer>,
    permit: Permit,
    /// The digest of the value at the last poll.
    known: [u8; 32],
}

impl Polling {
    /// Polls at the interval and records changes; returns why it stopped.
    async fn run(mut self, subscription: Arc<ManagedSubscription>, interval: Duration) -> String {
        let mut failures = 0;
        loop {
            tokio::time::sleep(interval).await;
            let hub = self
                .registry
                .upgrade()
                .and_then(|registry| registry.hub().ok());
            let Some(hub) = hub else {
                return "the hub is gone".to_owned();
            };
            let (events, _receiver) = EventSender::channel(Arc::clone(&self.caller), false, None);
            let cancel = CancellationToken::new();
            let reading = read_value(&hub, &subscription.target, &self.permit, events, cancel);
            match reading.await {
                Ok(answer) => {
                    failures = 0;
                    let found = digest(&answer);
                    if std::mem::replace(&mut self.known, found) != found {
                        subscription.changed(Some(answer));
                    }
                }
                Err(Failure::Forbidden(why)) => return why,
                Err(Failure::Failed(why)) => {
                    failures += 1;
                    if failures == MAX_CONSECUTIVE_FAILURES {
                        return format!("{failures} polls in a row failed, the last with: {why}");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's error text may be long and in any language; the reported text is short.
    #[test]
    fn long_error_texts_are_cut() {
        let Failure::Failed(why) = Failure::failed("ä".repeat(10_000)) else {
            panic!("it failed");
        };
        assert_eq!(why, format!("{}…", "ä".repeat(MAX_ERROR_BYTES / 2)));
    }
}
