//! The arguments of the tools. The doc comments are the descriptions in the schemas.

use plexus_mcp_core::Raw;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTree {
    /// The metadata of the tree, for example its name
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
    /// The owner that holds the first reference to the tree
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
    /// The new metadata, which replaces the old
    #[schemars(with = "Map<String, Value>")]
    pub(super) metadata: Raw,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct References {
    /// The tree's id
    pub(super) tree_id: String,
    /// The owner of the references
    #[schemars(length(min = 1, max = 200))]
    pub(super) owner_id: String,
    /// The number of references
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) count: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateText {
    /// The tree's id
    pub(super) tree_id: String,
    /// The parent of the new node; if left out, the root
    pub(super) parent: Option<String>,
    /// The text
    pub(super) content: String,
    /// The metadata of the node; `role` is the role of the speaker
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateExternal {
    /// The tree's id
    pub(super) tree_id: String,
    /// The parent of the new node; if left out, the root
    pub(super) parent: Option<String>,
    /// The handle of the data, as `plugin@version::method:meta`; `task@1::task:ID`,
    /// `context@1::node:ID` and `arbor@1::node:TREE:NODE` are shown with the text they point to
    pub(super) handle: String,
    /// The metadata of the node; `role` is the role of the speaker
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
