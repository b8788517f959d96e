//! The types of trees and nodes. The doc comments are the descriptions in the schemas, which models
//! read.

use std::borrow::Cow;

use plexus_mcp_core::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ArborError;

/// The lifecycle state of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the states are fixed by the specification"
)]
pub enum State {
    /// The tree has owners.
    Active,
    /// The tree has no owner, and can still be claimed.
    Scheduled,
    /// The tree can only be read.
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

/// Written by hand: derived, the doc comments of the variants would make it a `oneOf` of constants
/// instead of a plain `enum`.
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

/// A tree, without its nodes. Times are in UTC, in RFC 3339 with milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct TreeSummary {
    /// The tree's id. Ids sort by age.
    pub id: String,
    /// Whether the tree has owners, can still be claimed, or can only be read.
    pub state: State,
    /// The node that all others descend from.
    pub root: String,
    /// The node where the conversation continues.
    pub head: String,
    /// The owners that hold references to the tree.
    pub owners: Vec<Owner>,
    /// The number of references, of all owners together.
    pub ref_count: u64,
    /// The metadata that was given for the tree: a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// When the tree was created.
    pub created_at: String,
    /// When the tree was last changed.
    pub updated_at: String,
    /// When the last reference was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<String>,
    /// When the tree was archived, or will be unless it is claimed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
}

impl TreeSummary {
    /// Returns the tree if nodes may be added to it.
    pub fn must_be_active(self) -> Result<Self, ArborError> {
        let tree = self.must_be_changeable()?;
        match tree.state {
            State::Scheduled => Err(ArborError::Scheduled {
                until: tree.archived_at.unwrap_or_default(),
                tree_id: tree.id,
            }),
            State::Active | State::Archived => Ok(tree),
        }
    }

    /// Returns the tree if it may be changed at all.
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

/// An owner of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Owner {
    /// The id of the owner.
    pub owner_id: String,
    /// How many references the owner holds.
    pub count: u64,
}

/// A tree with all its nodes, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Tree {
    /// The tree.
    pub tree: TreeSummary,
    /// The nodes of the tree.
    pub nodes: Vec<TreeNode>,
}

/// A tree with the structure of its nodes, the oldest first, without their texts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct Skeleton {
    /// The tree.
    pub tree: TreeSummary,
    /// The parent and children of each node.
    pub nodes: Vec<SkeletonNode>,
}

/// The position of a node in its tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct SkeletonNode {
    /// The node's id.
    pub id: String,
    /// The parent of the node; none for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The children of the node, the oldest first.
    pub children: Vec<String>,
    /// Whether the node points to data of another service.
    pub external: bool,
}

/// A node: a text, or a pointer to data of another service.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[non_exhaustive]
pub struct TreeNode {
    /// The node's id. Ids sort by age.
    pub id: String,
    /// The parent of the node; none for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The children of the node, the oldest first.
    pub children: Vec<String>,
    /// The role of the speaker, such as `user`, if the metadata names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The text of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The handle of the data that the node points to, instead of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The metadata that was given for the node: a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<Raw>,
    /// When the node was added.
    pub created_at: String,
}
