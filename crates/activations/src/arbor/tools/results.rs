//! What the tools give. Models read the comments.

use schemars::JsonSchema;
use serde::Serialize;

use crate::arbor::model::Node;

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
        /// Whose references.
        owner_id: String,
        /// How many are theirs now.
        new_count: u64,
    }
    Render {
        /// The tree's id.
        tree_id: String,
        /// The tree, drawn with one line for each node.
        render: String,
    }
    NodeCreated {
        /// The tree's id.
        tree_id: String,
        /// The new node's id.
        node_id: String,
        /// The node it was added to.
        parent: Option<String>,
    }
    NodeData {
        /// The tree's id.
        tree_id: String,
        /// The node.
        node: Node,
    }
    Below {
        /// The tree's id.
        tree_id: String,
        /// The node's id.
        node_id: String,
        /// What was added to it, the oldest first.
        children: Vec<String>,
    }
    Above {
        /// The tree's id.
        tree_id: String,
        /// The node's id.
        node_id: String,
        /// The node it was added to; null for the root.
        parent: Option<String>,
    }
    Path {
        /// The tree's id.
        tree_id: String,
        /// The ids from the root to the node.
        path: Vec<String>,
    }
    Leaves {
        /// The tree's id.
        tree_id: String,
        /// The ids of the nodes to which nothing was added, the oldest first.
        leaves: Vec<String>,
    }
    PathData {
        /// The tree's id.
        tree_id: String,
        /// The nodes from the root to the node.
        nodes: Vec<Node>,
    }
    Handles {
        /// The tree's id.
        tree_id: String,
        /// The handles from the root to the node.
        handles: Vec<String>,
    }
}
