//! What the tools are given. Models read the comments.

use plexus_service::Raw;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTree {
    /// What is known of the tree, for example its name
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
    /// Who holds the tree
    #[serde(default = "system")]
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneTree {
    /// The tree's id
    pub(super) tree_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateMetadata {
    /// The tree's id
    pub(super) tree_id: String,
    /// What is known of the tree, in place of what was
    #[schemars(with = "Map<String, Value>")]
    pub(super) metadata: Raw,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct References {
    /// The tree's id
    pub(super) tree_id: String,
    /// Whose references
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner_id: String,
    /// How many
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) count: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateText {
    /// The tree's id
    pub(super) tree_id: String,
    /// The node to add it to; if left out, the root
    pub(super) parent: Option<String>,
    /// The text
    pub(super) content: String,
    /// What is known of the node; `role` tells who says it
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateExternal {
    /// The tree's id
    pub(super) tree_id: String,
    /// The node to add it to; if left out, the root
    pub(super) parent: Option<String>,
    /// What it points to, as `plugin@version::method:meta`; `task@1::task:ID`, `context@1::node:ID`
    /// and `arbor@1::node:TREE:NODE` are shown with what they point to
    pub(super) handle: String,
    /// What is known of the node; `role` tells who says it
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneNode {
    /// The tree's id
    pub(super) tree_id: String,
    /// The node's id
    pub(super) node_id: String,
}

fn system() -> String {
    "system".to_owned()
}

fn one() -> u32 {
    1
}
