//! Completion of prompt arguments and resource template variables.

use std::collections::BTreeMap;

use plexus_mcp_wire::Raw;
use serde::{Deserialize, Serialize};

use super::codec::{encodes, null_as_default};

/// The params of `completion/complete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteParams {
    /// The prompt or template of the argument.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument that is being typed.
    pub argument: CompletionArgument,
    /// The other arguments that are already known; from 2025-06-18.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "CompletionContext::is_empty"
    )]
    pub context: CompletionContext,
}

/// The prompt or template of a completed argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// An argument of a prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The prompt.
        name: String,
    },
    /// A variable of a resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The template, or a URI.
        uri: String,
    },
}

/// An argument as far as it has been typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// The text typed so far.
    pub value: String,
}

/// The context of a completion: the other arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionContext {
    /// Arguments already settled.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub arguments: BTreeMap<String, String>,
}

impl CompletionContext {
    fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }
}

/// The result of `completion/complete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The result of a completion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The proposed values, best first; at most [`MAX_VALUES`](Self::MAX_VALUES).
    pub values: Vec<String>,
    /// The number of all matching values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether further values match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// How many suggestions one result may hold (COMP-03).
    pub const MAX_VALUES: usize = 100;

    /// The first [`MAX_VALUES`](Self::MAX_VALUES) of `values`, and how many there are in all.
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let mut values = values.into_iter();
        let kept: Vec<String> = values
            .by_ref()
            .take(Self::MAX_VALUES)
            .map(Into::into)
            .collect();
        let left = values.count();
        Self {
            total: Some((kept.len() + left) as u64),
            has_more: Some(left > 0),
            values: kept,
        }
    }
}

impl From<Completion> for CompleteResult {
    fn from(completion: Completion) -> Self {
        Self {
            completion,
            meta: None,
        }
    }
}

encodes!(CompleteParams, CompleteResult);
