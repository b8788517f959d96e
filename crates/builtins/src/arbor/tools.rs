//! The tools of the trees.

mod arguments;
mod results;

use plexus_mcp_core::{Builder, LocalService, NoArguments};

use self::arguments::{
    CreateExternal, CreateText, CreateTree, OneNode, OneTree, References, UpdateMetadata,
};
use self::results::{
    Above, Below, Handles, Held, Leaves, NodeCreated, NodeData, Path, PathData, Render, These,
    ThisTree,
};
use super::error::ArborError;
use super::model::State;
use super::resources::resources;
use super::trees::{NewTreeNode, Payload, Trees};
use crate::names::Names;
use crate::tool_annotations::{idempotent, non_destructive, read_only};
use crate::tool_set::{ToolData, ToolSet};

/// Adds the tools and resources of trees.
pub fn arbor(builder: Builder, names: Names, trees: &Trees) -> Builder {
    let tools = ToolSet {
        builder,
        data: trees,
    };
    let tools = tree_tools(tools, names);
    let tools = tree_lists(tools, names);
    let tools = node_tools(tools, names);
    let tools = path_tools(tools, names);
    resources(tools.builder, trees)
}

impl ToolData for Trees {
    type Error = ArborError;

    fn notifying(&self, service: &LocalService) -> Self {
        Self::notifying(self, Some(service))
    }

    async fn refresh_lists(&self, service: &LocalService) {
        Self::refresh_lists(self, service).await;
    }
}

fn tree_tools(tools: ToolSet<'_, Trees>, names: Names) -> ToolSet<'_, Trees> {
    let tool = |method, title| names.tool("arbor", method).title(title);
    tools
        .tool_with_refresh(
            non_destructive(tool("tree_create", "Create tree"))
                            .description("Create a tree of texts, with an empty root and one reference for its owner"),
            async |trees: Trees, CreateTree { metadata, owner_id }: CreateTree| {
                let tree_id = trees.create(owner_id, metadata).await?.id;
                Ok(ThisTree { tree_id })
            },
        )
        .tool(
            read_only(tool("tree_get", "Get tree"))
                .description("Get a tree with all its nodes, the oldest first"),
            async |trees: Trees, OneTree { tree_id }: OneTree| trees.get(tree_id).await,
        )
        .tool(
            read_only(tool("tree_get_skeleton", "Get tree skeleton"))
                            .description("Get a tree with the structure of its nodes, but without their texts"),
            async |trees: Trees, OneTree { tree_id }: OneTree| trees.skeleton(tree_id).await,
        )
        .tool(
            read_only(tool("tree_list", "List trees"))
                .description("List the active trees, the newest first"),
            async |trees: Trees, _: NoArguments| listed(trees, State::Active).await,
        )
        .tool_with_refresh(
            idempotent(tool("tree_update_metadata", "Update tree metadata"))
                            .description("Replace the metadata of a tree"),
            async |trees: Trees, UpdateMetadata { tree_id, metadata }: UpdateMetadata| {
                let tree_id = trees.update_metadata(tree_id, metadata).await?.id;
                Ok(ThisTree { tree_id })
            },
        )
        .tool_with_refresh(
            non_destructive(tool("tree_claim", "Claim tree")).description(
                            "Add references to a tree, so that it stays active; count adds to what the owner holds",
            ),
            async |trees: Trees, of: References| {
                let new_count = trees.claim(&of.tree_id, &of.owner_id, of.count).await?;
                Ok(of.now(new_count))
            },
        )
        .tool_with_refresh(
            non_destructive(tool("tree_release", "Release tree")).description(
                "Release references to a tree; if it has no owner then, it is archived after 7 days, \
                 unless it is claimed before",
            ),
            async |trees: Trees, of: References| {
                let new_count = trees.release(&of.tree_id, &of.owner_id, of.count).await?;
                Ok(of.now(new_count))
            },
        )
}

fn tree_lists(tools: ToolSet<'_, Trees>, names: Names) -> ToolSet<'_, Trees> {
    let tool = |method, title| names.tool("arbor", method).title(title);
    tools
        .tool(
            read_only(tool("tree_list_scheduled", "List scheduled trees"))
                .description("List the trees without an owner that can still be claimed"),
            async |trees: Trees, _: NoArguments| listed(trees, State::Scheduled).await,
        )
        .tool(
            read_only(tool("tree_list_archived", "List archived trees"))
                .description("List the trees that can only be read"),
            async |trees: Trees, _: NoArguments| listed(trees, State::Archived).await,
        )
        .tool(
            read_only(tool("tree_render", "Render tree"))
                .description("Draw a tree as text, one line for each node"),
            async |trees: Trees, OneTree { tree_id }: OneTree| {
                let render = trees.render(&tree_id).await?;
                Ok(Render { tree_id, render })
            },
        )
}

fn node_tools(tools: ToolSet<'_, Trees>, names: Names) -> ToolSet<'_, Trees> {
    let tool = |method, title| names.tool("arbor", method).title(title);
    tools
        .tool(
            non_destructive(tool("node_create_text", "Create text node"))
                .description("Add a text to a tree"),
            async |trees: Trees, new: CreateText| {
                let new = NewTreeNode {
                    tree_id: new.tree_id,
                    parent: new.parent,
                    payload: Payload::Text(new.content),
                    metadata: new.metadata,
                };
                added(trees, new).await
            },
        )
        .tool(
            non_destructive(tool("node_create_external", "Create external node"))
                .description("Add a pointer to data of another service to a tree"),
            async |trees: Trees, new: CreateExternal| {
                let new = NewTreeNode {
                    tree_id: new.tree_id,
                    parent: new.parent,
                    payload: Payload::External(new.handle.parse()?),
                    metadata: new.metadata,
                };
                added(trees, new).await
            },
        )
        .tool(
            read_only(tool("node_get", "Get node")).description("Get one node of a tree"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let node = trees.node(&tree_id, node_id).await?;
                Ok(NodeData { tree_id, node })
            },
        )
        .tool(
            read_only(tool("node_get_children", "Get children"))
                .description("List the children of a node, the oldest first"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let children = trees.node(&tree_id, &node_id).await?.children;
                Ok(Below {
                    tree_id,
                    node_id,
                    children,
                })
            },
        )
        .tool(
            read_only(tool("node_get_parent", "Get parent"))
                .description("Get the parent of a node"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let parent = trees.node(&tree_id, &node_id).await?.parent;
                Ok(Above {
                    tree_id,
                    node_id,
                    parent,
                })
            },
        )
}

fn path_tools(tools: ToolSet<'_, Trees>, names: Names) -> ToolSet<'_, Trees> {
    let tool = |method, title| names.tool("arbor", method).title(title);
    tools
        .tool(
            read_only(tool("node_get_path", "Get path"))
                .description("List the ids of the nodes from the root to a node"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let path = trees.path(&tree_id, node_id).await?;
                Ok(Path { tree_id, path })
            },
        )
        .tool(
            read_only(tool("context_list_leaves", "List leaves"))
                .description("List the nodes without children, the oldest first"),
            async |trees: Trees, OneTree { tree_id }: OneTree| {
                let leaves = trees.leaves(&tree_id).await?;
                Ok(Leaves { tree_id, leaves })
            },
        )
        .tool(
            read_only(tool("context_get_path", "Get path data"))
                .description("Get the nodes from the root to a node, with their texts"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let nodes = trees.path_nodes(&tree_id, node_id).await?;
                Ok(PathData { tree_id, nodes })
            },
        )
        .tool(
            read_only(tool("context_get_handles", "Get handles"))
                .description("List the handles of the nodes from the root to a node"),
            async |trees: Trees, OneNode { tree_id, node_id }: OneNode| {
                let handles = trees.handles(&tree_id, node_id).await?;
                Ok(Handles { tree_id, handles })
            },
        )
}

async fn listed(trees: Trees, state: State) -> Result<These, ArborError> {
    let tree_ids = trees.list(state).await?;
    Ok(These { tree_ids })
}

async fn added(trees: Trees, new: NewTreeNode) -> Result<NodeCreated, ArborError> {
    let tree_id = new.tree_id.clone();
    let node = trees.add(new).await?;
    Ok(NodeCreated {
        tree_id,
        node_id: node.id,
        parent: node.parent,
    })
}

impl References {
    fn now(self, new_count: u64) -> Held {
        Held {
            tree_id: self.tree_id,
            owner_id: self.owner_id,
            new_count,
        }
    }
}
