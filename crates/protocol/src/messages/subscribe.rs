//! `subscriptions/listen`: the change notifications that a stateless client asks for.

use serde::{Deserialize, Serialize};

use super::codec::{encodes, is_false, null_as_default};

/// The params of `subscriptions/listen`, and of its acknowledgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenParams {
    /// The requested notifications; in the acknowledgement, those that will be sent.
    pub notifications: SubscriptionFilter,
}

/// Kinds of change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionFilter {
    /// The list of tools changed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// The list of prompts changed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// The list of resources changed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// The contents of these resources changed.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_subscriptions: Vec<String>,
}

encodes!(ListenParams, SubscriptionFilter);
