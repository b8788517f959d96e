//! What a client of the stateless era wants to be told about.

use serde::{Deserialize, Serialize};

use super::codec::{encodes, is_false, null_as_default};

/// The params of `subscriptions/listen`, and of its acknowledgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenParams {
    /// What is listened for; in the acknowledgement, what will be told.
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
