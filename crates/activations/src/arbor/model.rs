//! What trees and nodes are. Models read the comments.

use std::borrow::Cow;

use plexus_service::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ArborError;

/// Where a tree is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the states are fixed by the founding document"
)]
pub enum State {
    /// Somebody holds it.
    Active,
    /// Nobody does; it can still be claimed.
    Scheduled,
    /// It can only be read.
    Archived,
}

impl State {
    /// Every state, in the order in which a tree goes through them.
    pub const ALL: [Self; 3] = [Self::Active, Self::Scheduled, Self::Archived];

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Scheduled => "scheduled",
            Self::Archived => "archived",
        }
    }
}

/// A plain `enum`, which the comments above would otherwise make a choice of constants.
impl JsonSchema for State {
    fn schema_name() -> Cow<'static, str> {
        "State".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str) })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A tree, without its nodes. Times are in UTC, as RFC 3339 writes them, with milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct TreeSummary {
    /// The tree's id. Ids sort by age.
    pub id: String,
    /// Whether it is held, can still be claimed, or can only be read.
    pub state: State,
    /// The node that all others descend from.
    pub root: String,
    /// The node where the conversation goes on.
    pub head: String,
    /// Who holds it.
    pub owners: Vec<Owner>,
    /// How many references are held in all.
    pub ref_count: u64,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// When it was created.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
    /// When the last reference was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<String>,
    /// When it was or will be archived, unless it is claimed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
}

impl TreeSummary {
    /// The tree, if nodes may be added to it.
    pub(crate) fn must_be_active(self) -> Result<Self, ArborError> {
        let tree = self.must_be_changeable()?;
        match tree.state {
            State::Scheduled => Err(ArborError::Scheduled {
                until: tree.archived_at.unwrap_or_default(),
                tree_id: tree.id,
            }),
            State::Active | State::Archived => Ok(tree),
        }
    }

    /// The tree, if anything about it may change.
    pub(super) fn must_be_changeable(self) -> Result<Self, ArborError> {
        match self.state {
            State::Archived => Err(ArborError::Archived {
                since: self.archived_at.unwrap_or_default(),
                tree_id: self.id,
            }),
            State::Active | State::Scheduled => Ok(self),
        }
    }
}

/// Who holds a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Owner {
    /// Who it is.
    pub owner_id: String,
    /// How many references are theirs.
    pub count: u64,
}

/// A tree with all its nodes, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Tree {
    /// The tree.
    pub tree: TreeSummary,
    /// Its nodes.
    pub nodes: Vec<Node>,
}

/// A tree with the places of its nodes, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Skeleton {
    /// The tree.
    pub tree: TreeSummary,
    /// Where its nodes are.
    pub nodes: Vec<SkeletonNode>,
}

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct SkeletonNode {
    /// The node's id.
    pub id: String,
    /// The node it was added to; none for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What was added to it, the oldest first.
    pub children: Vec<String>,
    /// Whether it points to what another activation has.
    pub external: bool,
}

/// A node: a text, or a pointer to what another activation has.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// The node's id. Ids sort by age.
    pub id: String,
    /// The node it was added to; none for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What was added to it, the oldest first.
    pub children: Vec<String>,
    /// Who says it, if its metadata tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What it points to instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// When it was added.
    pub created_at: String,
}
