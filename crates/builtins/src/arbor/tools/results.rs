//! The results of the tools. The doc comments are the descriptions in the schemas.

use schemars::JsonSchema;
use serde::Serialize;

use crate::arbor::model::TreeNode;

macro_rules! results {
    ($($name:ident { $($(#[doc = $doc:literal])+ $member:ident: $type:ty,)* })*) => {
        $(
            #[derive(Serialize, JsonSchema)]
            #[schemars(deny_unknown_fields)]
            pub(super) struct $name {
                $($(#[doc = $doc])+ pub(super) $member: $type,)*
            }
        )*
    };
}

results! {
    ThisTree {
        /// The tree's id.
        tree_id: String,
    }
    These {
        /// The ids of the trees, the newest first.
        tree_ids: Vec<String>,
    }
    Held {
        /// The tree's id.
        tree_id: String,
        /// The owner of the references.
        owner_id: String,
        /// The number of references that the owner holds now.
        new_count: u64,
    }
    Render {
        /// The tree's id.
        tree_id: String,
        /// A drawing of the tree, one line for each node.
        render: String,
    }
    NodeCreated {
        /// The tree's id.
        tree_id: String,
        /// The new node's id.
        node_id: String,
        /// The parent of the new node.
        parent: Option<String>,
    }
    NodeData {
        /// The tree's id.
        tree_id: String,
        /// The node.
        node: TreeNode,
    }
    Below {
        /// The tree's id.
        tree_id: String,
        /// The node's id.
        node_id: String,
        /// The ids of the node's children, the oldest first.
        children: Vec<String>,
    }
    Above {
        /// The tree's id.
        tree_id: String,
        /// The node's id.
        node_id: String,
        /// The parent of the node; null for the root.
        parent: Option<String>,
    }
    Path {
        /// The tree's id.
        tree_id: String,
        /// The ids of the nodes from the root to the node.
        path: Vec<String>,
    }
    Leaves {
        /// The tree's id.
        tree_id: String,
        /// The ids of the nodes without children, the oldest first.
        leaves: Vec<String>,
    }
    PathData {
        /// The tree's id.
        tree_id: String,
        /// The nodes from the root to the requested node.
        nodes: Vec<TreeNode>,
    }
    Handles {
        /// The tree's id.
        tree_id: String,
        /// The handles of the nodes from the root to the requested node.
        handles: Vec<String>,
    }
}
