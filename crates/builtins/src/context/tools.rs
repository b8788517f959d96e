//! The tools and resources of the context graph.

use plexus_mcp_core::{
    Builder, CallToolResult, ContentBlock, Context, Json, Raw, ResourceTemplate, Tool, ToolResult,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::audit::AuditQuery;
use super::consolidate::Consolidate;
use super::error::GraphError;
use super::forget::{Boost, Forget};
use super::graph::Graph;
use super::link::{Link, NeighboursQuery, Traverse, Unlink};
use super::merge::Merge;
use super::node::{NewNode, excerpt};
use super::nodes::NodeQuery;
use super::search::{Hit, Search, SearchResults};
use crate::json::{self, JSON};
use crate::names::Names;
use crate::tool_annotations::{destructive, idempotent, non_destructive, read_only};

/// The maximum size of the excerpt of each hit in the text of a result, in bytes.
const EXCERPT_BYTES: usize = 400;

/// Adds the tools `context.query`, `context.store` and so on, and the resources
/// `context://node/{id}`.
///
/// Subscribers of a node are notified when it changes: at once if these tools change it; with the
/// next call, or by [`AliasedService::follow_external_changes`], if another process changed it.
///
/// [`AliasedService::follow_external_changes`]: crate::AliasedService::follow_external_changes
pub fn context(builder: Builder, names: Names, graph: &Graph) -> Builder {
    let tool = |method| names.tool("context", method);
    let tools = Tools { builder, graph };
    let tools = query(tools, tool("query"))
        .json(
            idempotent(tool("store").title("Store a memory")).description(
                "Stores a text, under its key if it has one; the same text is stored only \
                 once",
            ),
            async |graph: Graph, node: NewNode, caller| graph.store(node, &caller).await,
        )
        .json(
            read_only(tool("get").title("Get a memory"))
                .description("Gets a whole node, by its id or by its key, with its links"),
            async |graph: Graph, query: NodeQuery, _| graph.find(query).await,
        )
        .json(
            read_only(tool("search").title("Search memories")).description(
                "Searches nodes by words (BM25), by trigram similarity of the spelling and by \
                 links, the best first",
            ),
            async |graph: Graph, search: Search, _| graph.search(search).await,
        )
        .json(
            idempotent(tool("link").title("Link two memories"))
                .description("Links one node to another, or changes the weight of their link"),
            async |graph: Graph, link: Link, caller| graph.link(link, &caller).await,
        )
        .json(
            destructive(tool("unlink").title("Unlink two memories"))
                .description("Removes links from one node to another"),
            async |graph: Graph, unlink: Unlink, caller| graph.unlink(unlink, &caller).await,
        )
        .json(
            read_only(tool("neighbours").title("List neighbours"))
                .description("Lists the nodes that are one link away from a node"),
            async |graph: Graph, query: NeighboursQuery, _| graph.neighbours(query).await,
        )
        .json(
            read_only(tool("traverse").title("Follow links")).description(
                "Follows links from a node, and lists the reached nodes with their \
                 proximity",
            ),
            async |graph: Graph, traverse: Traverse, _| graph.traverse(traverse).await,
        );
    let Tools { builder, .. } = curation(tools, names);
    resources(builder, graph)
}

/// Adds only the tool `query_context`, as the specification of Ghost has it (S000-20).
pub fn ghost_context(builder: Builder, graph: &Graph) -> Builder {
    query(Tools { builder, graph }, Tool::new("query_context")).builder
}

fn query(tools: Tools<'_>, tool: Tool) -> Tools<'_> {
    tools.plain(
        read_only(tool.title("Query the context graph"))
            .description("Query the context graph for relevant information"),
        async |graph: Graph, Query { query }: Query, _| answer(&graph.query(&query).await?),
    )
}

fn curation(tools: Tools<'_>, names: Names) -> Tools<'_> {
    let tool = |method| names.tool("context", method);
    tools
        .json(
            destructive(tool("forget").title("Forget a memory")).description(
                "Forgets a node; unless asked otherwise, it can be restored for 30 days",
            ),
            async |graph: Graph, forget: Forget, caller| graph.forget(forget, &caller).await,
        )
        .json(
            idempotent(tool("restore").title("Restore a memory"))
                .description("Restores a forgotten node"),
            async |graph: Graph, Id { id }: Id, caller| graph.restore(&id, &caller).await,
        )
        .json(
            non_destructive(tool("boost").title("Change importance"))
                .description("Raises or lowers the importance of a node"),
            async |graph: Graph, boost: Boost, caller| graph.boost(boost, &caller).await,
        )
        .json(
            read_only(tool("consolidate").title("Propose merges"))
                .description("Proposes pairs of similar nodes to merge, and changes nothing"),
            async |graph: Graph, request: Consolidate, _| graph.consolidate(request).await,
        )
        .json(
            destructive(tool("merge").title("Merge memories"))
                .description("Merges several nodes into one; for 30 days this can be undone"),
            async |graph: Graph, merge: Merge, caller| graph.merge(merge, &caller).await,
        )
        .json(
            destructive(tool("unmerge").title("Undo a merge")).description(
                "Undoes a merge: its sources are restored, the merged node is forgotten",
            ),
            async |graph: Graph, Unmerge { reversal_hash }: Unmerge, caller| {
                graph.unmerge(&reversal_hash, &caller).await
            },
        )
        .json(
            read_only(tool("audit").title("Audit changes")).description(
                "Lists the changes of the graph with their callers and reasons, the newest first",
            ),
            async |graph: Graph, query: AuditQuery, _| graph.audit(query).await,
        )
        .json(
            read_only(tool("status").title("Context graph status"))
                .description("Gets the numbers of nodes, links and changes in the graph"),
            async |graph: Graph, Nothing {}, _| graph.status().await,
        )
}

fn resources(builder: Builder, graph: &Graph) -> Builder {
    let graph = graph.clone();
    builder.template(
        ResourceTemplate::new(super::uri("{id}"), "context node")
            .title("Memory")
            .description("A node of the context graph, with its links")
            .mime_type(JSON),
        move |uri: String, Id { id }, _: Context| {
            let graph = graph.clone();
            async move {
                match graph.get(&id).await {
                    Ok(node) => json::contents(uri, &node),
                    Err(error) => Err(error.into_fault(uri)),
                }
            }
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// The search query
    query: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Id {
    /// The id of the node.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unmerge {
    /// The hash that the merge returned.
    #[schemars(length(min = 1, max = 64))]
    reversal_hash: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A builder to which the tools of the graph are added.
struct Tools<'a> {
    builder: Builder,
    graph: &'a Graph,
}

impl Tools<'_> {
    /// Adds a tool whose result is data.
    fn json<Args, F, Fut, R>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Graph, Args, String) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<R, GraphError>> + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
    {
        let graph = self.graph.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, ctx: Context| {
                with_notifications(graph.clone(), ctx, move |graph, caller| async move {
                    Ok(Json(handler(graph, arguments, caller).await?))
                })
            });
        Self { builder, ..self }
    }

    /// Adds a tool whose result is text.
    fn plain<Args, F, Fut>(self, tool: Tool, handler: F) -> Self
    where
        Args: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Graph, Args, String) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = ToolResult> + Send + 'static,
    {
        let graph = self.graph.clone();
        let builder = self
            .builder
            .tool(tool, move |arguments: Args, ctx: Context| {
                with_notifications(graph.clone(), ctx, move |graph, caller| {
                    handler(graph, arguments, caller)
                })
            });
        Self { builder, ..self }
    }
}

/// Runs the handler of a call, then notifies subscribers of all changes since the last call.
async fn with_notifications<T, Fut>(
    graph: Graph,
    ctx: Context,
    handler: impl FnOnce(Graph, String) -> Fut,
) -> ToolResult<T>
where
    Fut: Future<Output = ToolResult<T>>,
{
    graph.track_changes().await?;
    let outcome = handler(graph.clone(), caller(&ctx)).await;
    graph.notify_changes(ctx.service()).await;
    outcome
}

/// The caller as the audit trail names it: the principal, which is authenticated, and the name that
/// the client gives itself, which is not.
fn caller(ctx: &Context) -> String {
    #[derive(Deserialize)]
    struct ClientInfo {
        name: String,
    }
    let principal = ctx.peer().principal.as_str();
    let client = ctx.peer().client_info.as_ref();
    match client.map(Raw::decode::<ClientInfo>) {
        Some(Ok(ClientInfo { name })) => format!("{principal} ({})", excerpt(&name, 64)),
        _ => principal.to_owned(),
    }
}

/// The result in two blocks: text that begins as S000-22 says, and JSON as S000-49 says.
fn answer(found: &SearchResults) -> ToolResult {
    let mut paragraphs = vec![format!("Found {} relevant context nodes", found.count)];
    let hits = (1..).zip(&found.results);
    paragraphs.extend(hits.map(|(number, hit)| format!("{number}. {}", line(hit))));
    let blocks = [
        ContentBlock::text(paragraphs.join("\n\n")),
        ContentBlock::text(json::to_json(found)?.as_str()),
    ];
    Ok(CallToolResult::new(blocks))
}

fn line(hit: &Hit) -> String {
    let node = &hit.node;
    let name = node.key.as_ref().unwrap_or(&node.id);
    let content = excerpt(&node.content, EXCERPT_BYTES);
    format!("{}/{name}: {content}", node.namespace)
}
