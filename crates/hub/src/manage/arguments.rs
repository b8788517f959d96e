//! Arguments and results of the tools.

use plexus_mcp_core::Call;
use plexus_mcp_wire::{Object, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest interval between two polls (S001-22).
const MIN_INTERVAL_MS: u64 = 1000;
const MAX_INTERVAL_MS: u64 = 24 * 60 * 60 * 1000;
const DEFAULT_INTERVAL_MS: u64 = 5000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// List only what this server has.
    pub(super) server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// The server that has the resource.
    pub(super) server: String,
    /// The resource.
    pub(super) uri: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeArguments {
    /// The server that has the resource.
    pub(super) server: String,
    /// The resource.
    pub(super) uri: String,
    /// Why it is watched; you are reminded of it when it changes.
    pub(super) reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UnsubscribeArguments {
    /// End subscriptions to what this server has.
    pub(super) server: Option<String>,
    /// End subscriptions to this resource.
    pub(super) uri: Option<String>,
    /// End this subscription.
    pub(super) subscription_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PollArguments {
    /// What is polled.
    #[serde(rename = "type")]
    pub(super) kind: PollKind,
    /// The server that has it.
    pub(super) server: String,
    /// The tool, by the server's own name for it; for type "tool".
    pub(super) tool_name: Option<String>,
    /// What the tool is called with.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub(super) arguments: Option<Raw>,
    /// The resource; for type "resource".
    pub(super) uri: Option<String>,
    /// Milliseconds between two looks at it.
    #[serde(default = "default_interval")]
    #[schemars(range(min = MIN_INTERVAL_MS, max = MAX_INTERVAL_MS))]
    pub(super) interval_ms: u64,
    /// Why it is polled; you are reminded of it when it changes.
    pub(super) reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum PollKind {
    Tool,
    Resource,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct UnsubscribePollingArguments {
    /// End this subscription.
    pub(super) subscription_id: Option<String>,
    /// End polling of what this server has.
    pub(super) server: Option<String>,
    /// End polling of this tool or resource.
    pub(super) target: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subscribed {
    pub(super) subscribed: bool,
    pub(super) subscription_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Unsubscribed {
    /// Whether there was anything to end.
    pub(super) unsubscribed: bool,
}

/// Accepts `server_name` for `server`, as some clients call it (C55).
pub(super) fn accept_aliases(call: &mut Call) {
    let renamed = || {
        let mut arguments = Object::parse(call.params.get("arguments")?).ok()?;
        if arguments.contains("server") {
            return None;
        }
        let server = arguments.remove("server_name")?;
        arguments.set("server", server);
        Some(arguments.to_raw())
    };
    if let Some(arguments) = renamed() {
        call.params.set("arguments", arguments);
    }
}

fn default_interval() -> u64 {
    DEFAULT_INTERVAL_MS
}
