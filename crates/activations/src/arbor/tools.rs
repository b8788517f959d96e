//! Trees as tools.

mod arguments;
mod results;

use plexus_service::{
    Boxed, Builder, Context, Json, NoArguments, Tool, ToolAnnotations, ToolResult,
};

use self::arguments::{
    CreateExternal, CreateText, CreateTree, OneNode, OneTree, References, UpdateMetadata,
};
use self::results::{
    Above, Below, Handles, Held, Leaves, NodeCreated, NodeData, Path, PathData, Render, These,
    ThisTree,
};
use super::error::ArborError;
use super::model::{Skeleton, State, Tree};
use super::resources::resources;
use super::trees::{NewNode, Payload, Trees};
use crate::names::Names;

/// Every method of the namespace `arbor`, in the order in which they are listed.
pub const METHODS: [&str; 19] = [
    "tree_create",
    "tree_get",
    "tree_get_skeleton",
    "tree_list",
    "tree_update_metadata",
    "tree_claim",
    "tree_release",
    "tree_list_scheduled",
    "tree_list_archived",
    "tree_render",
    "node_create_text",
    "node_create_external",
    "node_get",
    "node_get_children",
    "node_get_parent",
    "node_get_path",
    "context_list_leaves",
    "context_get_path",
    "context_get_handles",
];

/// Adds the tools and resources of trees.
pub fn arbor(builder: Builder, names: Names, trees: &Trees) -> Builder {
    let builder = tree_tools(builder, names, trees);
    let builder = node_tools(builder, names, trees);
    resources(builder, trees)
}

fn tree_tools(builder: Builder, names: Names, trees: &Trees) -> Builder {
    let tool = |method| names.tool("arbor", method);
    builder
        .tool(
            changing(tool("tree_create").title("Create tree"))
                .description("Create a tree of texts, with an empty root; its owner holds it once"),
            listing(trees, tree_create),
        )
        .tool(
            reading(tool("tree_get").title("Get tree"))
                .description("Get a tree with all its nodes, the oldest first"),
            with(trees, tree_get),
        )
        .tool(
            reading(tool("tree_get_skeleton").title("Get tree skeleton"))
                .description("Get a tree with the places of its nodes, but without their texts"),
            with(trees, tree_get_skeleton),
        )
        .tool(
            reading(tool("tree_list").title("List trees"))
                .description("List the active trees, the newest first"),
            with(trees, tree_list),
        )
        .tool(
            idempotent(tool("tree_update_metadata").title("Update tree metadata"))
                .description("Replace what is known of a tree"),
            listing(trees, tree_update_metadata),
        )
        .tool(
            changing(tool("tree_claim").title("Claim tree")).description(
                "Hold a tree, so that it stays active; count adds up with what the owner holds",
            ),
            listing(trees, tree_claim),
        )
        .tool(
            changing(tool("tree_release").title("Release tree")).description(
                "Let go of a tree; if nobody holds it any more, it is archived after 7 days, \
                 unless it is claimed before",
            ),
            listing(trees, tree_release),
        )
        .tool(
            reading(tool("tree_list_scheduled").title("List scheduled trees"))
                .description("List the trees that nobody holds and that can still be claimed"),
            with(trees, tree_list_scheduled),
        )
        .tool(
            reading(tool("tree_list_archived").title("List archived trees"))
                .description("List the trees that can only be read"),
            with(trees, tree_list_archived),
        )
        .tool(
            reading(tool("tree_render").title("Render tree"))
                .description("Draw a tree as text, one line for each node"),
            with(trees, tree_render),
        )
}

fn node_tools(builder: Builder, names: Names, trees: &Trees) -> Builder {
    let tool = |method| names.tool("arbor", method);
    builder
        .tool(
            changing(tool("node_create_text").title("Create text node"))
                .description("Add a text to a tree"),
            with(trees, node_create_text),
        )
        .tool(
            changing(tool("node_create_external").title("Create external node"))
                .description("Add a pointer to what another activation has to a tree"),
            with(trees, node_create_external),
        )
        .tool(
            reading(tool("node_get").title("Get node")).description("Get one node of a tree"),
            with(trees, node_get),
        )
        .tool(
            reading(tool("node_get_children").title("Get children"))
                .description("List what was added to a node, the oldest first"),
            with(trees, node_get_children),
        )
        .tool(
            reading(tool("node_get_parent").title("Get parent"))
                .description("Tell to which node a node was added"),
            with(trees, node_get_parent),
        )
        .tool(
            reading(tool("node_get_path").title("Get path"))
                .description("List the ids of the nodes from the root to a node"),
            with(trees, node_get_path),
        )
        .tool(
            reading(tool("context_list_leaves").title("List leaves"))
                .description("List the nodes to which nothing was added, the oldest first"),
            with(trees, context_list_leaves),
        )
        .tool(
            reading(tool("context_get_path").title("Get path data"))
                .description("Get the nodes from the root to a node, with their texts"),
            with(trees, context_get_path),
        )
        .tool(
            reading(tool("context_get_handles").title("Get handles"))
                .description("List the handles of the nodes from the root to a node"),
            with(trees, context_get_handles),
        )
}

async fn tree_create(trees: Trees, arguments: CreateTree) -> Result<ThisTree, ArborError> {
    let CreateTree { metadata, owner_id } = arguments;
    let tree = trees.create(owner_id, metadata).await?;
    Ok(ThisTree { tree_id: tree.id })
}

async fn tree_get(trees: Trees, OneTree { tree_id }: OneTree) -> Result<Tree, ArborError> {
    trees.get(tree_id).await
}

async fn tree_get_skeleton(
    trees: Trees,
    OneTree { tree_id }: OneTree,
) -> Result<Skeleton, ArborError> {
    trees.skeleton(tree_id).await
}

async fn tree_list(trees: Trees, _: NoArguments) -> Result<These, ArborError> {
    let tree_ids = trees.list(State::Active).await?;
    Ok(These { tree_ids })
}

async fn tree_list_scheduled(trees: Trees, _: NoArguments) -> Result<These, ArborError> {
    let tree_ids = trees.list(State::Scheduled).await?;
    Ok(These { tree_ids })
}

async fn tree_list_archived(trees: Trees, _: NoArguments) -> Result<These, ArborError> {
    let tree_ids = trees.list(State::Archived).await?;
    Ok(These { tree_ids })
}

async fn tree_update_metadata(
    trees: Trees,
    arguments: UpdateMetadata,
) -> Result<ThisTree, ArborError> {
    let UpdateMetadata { tree_id, metadata } = arguments;
    let tree = trees.update_metadata(tree_id, metadata).await?;
    Ok(ThisTree { tree_id: tree.id })
}

async fn tree_claim(trees: Trees, arguments: References) -> Result<Held, ArborError> {
    let References {
        tree_id,
        owner_id,
        count,
    } = arguments;
    let new_count = trees.claim(&tree_id, &owner_id, count).await?;
    Ok(Held {
        tree_id,
        owner_id,
        new_count,
    })
}

async fn tree_release(trees: Trees, arguments: References) -> Result<Held, ArborError> {
    let References {
        tree_id,
        owner_id,
        count,
    } = arguments;
    let new_count = trees.release(&tree_id, &owner_id, count).await?;
    Ok(Held {
        tree_id,
        owner_id,
        new_count,
    })
}

async fn tree_render(trees: Trees, OneTree { tree_id }: OneTree) -> Result<Render, ArborError> {
    let render = trees.render(&tree_id).await?;
    Ok(Render { tree_id, render })
}

async fn node_create_text(trees: Trees, arguments: CreateText) -> Result<NodeCreated, ArborError> {
    let CreateText {
        tree_id,
        parent,
        content,
        metadata,
    } = arguments;
    let new = NewNode {
        tree_id,
        parent,
        payload: Payload::Text(content),
        metadata,
    };
    add(trees, new).await
}

async fn node_create_external(
    trees: Trees,
    arguments: CreateExternal,
) -> Result<NodeCreated, ArborError> {
    let CreateExternal {
        tree_id,
        parent,
        handle,
        metadata,
    } = arguments;
    let new = NewNode {
        tree_id,
        parent,
        payload: Payload::External(handle.parse()?),
        metadata,
    };
    add(trees, new).await
}

async fn add(trees: Trees, new: NewNode) -> Result<NodeCreated, ArborError> {
    let tree_id = new.tree_id.clone();
    let node = trees.add(new).await?;
    Ok(NodeCreated {
        tree_id,
        node_id: node.id,
        parent: node.parent,
    })
}

async fn node_get(trees: Trees, arguments: OneNode) -> Result<NodeData, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let node = trees.node(&tree_id, node_id).await?;
    Ok(NodeData { tree_id, node })
}

async fn node_get_children(trees: Trees, arguments: OneNode) -> Result<Below, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let children = trees.node(&tree_id, &node_id).await?.children;
    Ok(Below {
        tree_id,
        node_id,
        children,
    })
}

async fn node_get_parent(trees: Trees, arguments: OneNode) -> Result<Above, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let parent = trees.node(&tree_id, &node_id).await?.parent;
    Ok(Above {
        tree_id,
        node_id,
        parent,
    })
}

async fn node_get_path(trees: Trees, arguments: OneNode) -> Result<Path, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let path = trees.path(&tree_id, node_id).await?;
    Ok(Path { tree_id, path })
}

async fn context_list_leaves(
    trees: Trees,
    OneTree { tree_id }: OneTree,
) -> Result<Leaves, ArborError> {
    let leaves = trees.leaves(&tree_id).await?;
    Ok(Leaves { tree_id, leaves })
}

async fn context_get_path(trees: Trees, arguments: OneNode) -> Result<PathData, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let nodes = trees.path_nodes(&tree_id, node_id).await?;
    Ok(PathData { tree_id, nodes })
}

async fn context_get_handles(trees: Trees, arguments: OneNode) -> Result<Handles, ArborError> {
    let OneNode { tree_id, node_id } = arguments;
    let handles = trees.handles(&tree_id, node_id).await?;
    Ok(Handles { tree_id, handles })
}

/// A handler that is given the trees, and whose changes are announced by the service it is called
/// through.
fn with<Args, Fut, R>(
    trees: &Trees,
    handler: fn(Trees, Args) -> Fut,
) -> impl Fn(Args, Context) -> Boxed<ToolResult<Json<R>>> + Send + Sync + 'static
where
    Args: 'static,
    Fut: Future<Output = Result<R, ArborError>> + Send + 'static,
    R: 'static,
{
    let trees = trees.clone();
    move |arguments, context| {
        let done = handler(trees.announcing_to(context.service()), arguments);
        Box::pin(async move { Ok(Json(done.await?)) })
    }
}

/// The same for a tool that changes which trees are listed, or how.
fn listing<Args, Fut, R>(
    trees: &Trees,
    handler: fn(Trees, Args) -> Fut,
) -> impl Fn(Args, Context) -> Boxed<ToolResult<Json<R>>> + Send + Sync + 'static
where
    Args: 'static,
    Fut: Future<Output = Result<R, ArborError>> + Send + 'static,
    R: Send + 'static,
{
    let trees = trees.clone();
    move |arguments, context| {
        let trees = trees.announcing_to(context.service());
        let done = handler(trees.clone(), arguments);
        Box::pin(async move {
            let done = done.await?;
            trees.offer(context.service()).await;
            Ok(Json(done))
        })
    }
}

fn reading(tool: Tool) -> Tool {
    tool.annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn changing(tool: Tool) -> Tool {
    tool.annotations(changes().idempotent(false))
}

fn idempotent(tool: Tool) -> Tool {
    tool.annotations(changes().idempotent(true))
}

fn changes() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(false)
        .open_world(false)
}
