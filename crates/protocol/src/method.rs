//! Method names, and which revision has which.

use crate::revision::{Era, Revision};

/// Opens a legacy session.
pub const INITIALIZE: &str = "initialize";
/// The client is ready; ends the handshake.
pub const INITIALIZED: &str = "notifications/initialized";
/// Some old clients leave out the prefix (C06).
pub const INITIALIZED_ALIAS: &str = "initialized";
/// Liveness, legacy only.
pub const PING: &str = "ping";
/// Describes the server. Stateless revisions only.
pub const DISCOVER: &str = "server/discover";
/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to updates of a resource, legacy only.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends such a subscription.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Opens a stream of change notifications, stateless revisions only.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Fills in a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Proposes values for an argument.
pub const COMPLETE: &str = "completion/complete";
/// Sets the session's log level, legacy only.
pub const SET_LEVEL: &str = "logging/setLevel";

/// Asks the user to fill in a form or visit a URL.
pub const ELICIT: &str = "elicitation/create";
/// Asks the client's model.
pub const SAMPLE: &str = "sampling/createMessage";
/// Asks for the client's roots.
pub const ROOTS_LIST: &str = "roots/list";

/// Cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Reports progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const LOG: &str = "notifications/message";
/// The list of tools changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The list of resources changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// The list of prompts changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// A resource changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The client's roots changed.
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// First message of a [`SUBSCRIPTIONS_LISTEN`] stream.
pub const SUBSCRIPTION_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// A URL elicitation is finished (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// Whether `revision` defines the client-to-server request `method`; `None` for methods that no
/// revision defines, which a gateway may still pass on.
pub fn defined_in(method: &str, revision: Revision) -> Option<bool> {
    let era = revision.era();
    match method {
        TOOLS_LIST
        | TOOLS_CALL
        | RESOURCES_LIST
        | RESOURCE_TEMPLATES_LIST
        | RESOURCES_READ
        | PROMPTS_LIST
        | PROMPTS_GET
        | COMPLETE => Some(true),
        INITIALIZE | PING | RESOURCES_SUBSCRIBE | RESOURCES_UNSUBSCRIBE | SET_LEVEL => {
            Some(era == Era::Handshake)
        }
        DISCOVER | SUBSCRIPTIONS_LISTEN => Some(era == Era::Stateless),
        _ => None,
    }
}

/// Whether a stateless server may answer `method` with `input_required` (MRTR26-02).
pub fn allows_input_required(method: &str) -> bool {
    matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
}

/// The member of `params` that the `Mcp-Name` header mirrors (HDR26-03).
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        TOOLS_CALL | PROMPTS_GET => Some("name"),
        RESOURCES_READ => Some("uri"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C47, PING-03: what 2026-07-28 removed is gone there and only there.
    #[test]
    fn removed_methods_are_legacy_only() {
        for method in [
            INITIALIZE,
            PING,
            RESOURCES_SUBSCRIBE,
            RESOURCES_UNSUBSCRIBE,
            SET_LEVEL,
        ] {
            for revision in Revision::ALL {
                let legacy = revision.era() == Era::Handshake;
                assert_eq!(
                    defined_in(method, revision),
                    Some(legacy),
                    "{method} {revision}"
                );
            }
        }
        assert_eq!(defined_in(DISCOVER, Revision::V2025_11_25), Some(false));
        assert_eq!(defined_in("vendor/thing", Revision::V2025_11_25), None);
    }
}
