//! The graph as tools and resources.

use plexus_service::{
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
use super::remember::NodeQuery;
use super::search::{Found, Hit, Search};
use crate::hints::{changing, destructive, idempotent, reading};
use crate::json::{self, JSON};
use crate::names::Names;

/// How much of each hit a plain answer shows.
const EXCERPT: usize = 400;

/// Adds the tools `context.query`, `context.store` and so on, and the resources
/// `context://node/{id}`.
///
/// Whoever watches a node is told when it changes: at once if it changes through these tools, and
/// with the next call, or by [`Aliased::follow`](crate::Aliased::follow), if another process
/// changed it.
pub fn context(builder: Builder, names: Names, graph: &Graph) -> Builder {
    let tool = |method| names.tool("context", method);
    let tools = Tools { builder, graph };
    let tools = query(tools, tool("query"))
        .json(
            idempotent(tool("store").title("Store a memory")).description(
                "Remembers a text, by its key if it has one; the same text is remembered once",
            ),
            async |graph: Graph, node: NewNode, caller| graph.store(node, &caller).await,
        )
        .json(
            reading(tool("get").title("Get a memory"))
                .description("Gives a node in full, by its id or by its key, with its links"),
            async |graph: Graph, query: NodeQuery, _| graph.find(query).await,
        )
        .json(
            reading(tool("search").title("Search memories")).description(
                "Finds nodes by words, by similar spelling and by links, the best first",
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
                .description("Takes links from one node to another away"),
            async |graph: Graph, unlink: Unlink, caller| graph.unlink(unlink, &caller).await,
        )
        .json(
            reading(tool("neighbours").title("List neighbours"))
                .description("Gives the nodes that are one link away from a node"),
            async |graph: Graph, query: NeighboursQuery, _| graph.neighbours(query).await,
        )
        .json(
            reading(tool("traverse").title("Follow links"))
                .description("Follows links from a node, and tells how near what it reaches is"),
            async |graph: Graph, traverse: Traverse, _| graph.traverse(traverse).await,
        );
    let Tools { builder, .. } = curation(tools, names);
    resources(builder, graph)
}

/// Adds the one tool of the founding system, under its name, and nothing else (S000-20).
pub fn founding_context(builder: Builder, graph: &Graph) -> Builder {
    query(Tools { builder, graph }, Tool::new("query_context")).builder
}

fn query(tools: Tools<'_>, tool: Tool) -> Tools<'_> {
    tools.plain(
        reading(tool.title("Query the context graph"))
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
                .description("Gets a forgotten node back"),
            async |graph: Graph, Id { id }: Id, caller| graph.restore(&id, &caller).await,
        )
        .json(
            changing(tool("boost").title("Change importance"))
                .description("Makes a node more important, or less"),
            async |graph: Graph, boost: Boost, caller| graph.boost(boost, &caller).await,
        )
        .json(
            reading(tool("consolidate").title("Propose merges"))
                .description("Proposes pairs of similar nodes to merge, and changes nothing"),
            async |graph: Graph, request: Consolidate, _| graph.consolidate(request).await,
        )
        .json(
            destructive(tool("merge").title("Merge memories"))
                .description("Makes one node of several; for 30 days this can be undone"),
            async |graph: Graph, merge: Merge, caller| graph.merge(merge, &caller).await,
        )
        .json(
            destructive(tool("unmerge").title("Undo a merge"))
                .description("Undoes a merge: its sources are back, the merged node is forgotten"),
            async |graph: Graph, Unmerge { reversal_hash }: Unmerge, caller| {
                graph.unmerge(&reversal_hash, &caller).await
            },
        )
        .json(
            reading(tool("audit").title("Audit changes"))
                .description("Tells what was done to the graph, by whom and why, the newest first"),
            async |graph: Graph, query: AuditQuery, _| graph.audit(query).await,
        )
        .json(
            reading(tool("status").title("Context graph status"))
                .description("Tells how much is in the graph"),
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
    /// Which node.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unmerge {
    /// The hash that the merge gave.
    #[schemars(length(min = 1, max = 64))]
    reversal_hash: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A builder that is given the graph's tools.
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
                attended(graph.clone(), ctx, move |graph, caller| async move {
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
                attended(graph.clone(), ctx, move |graph, caller| {
                    handler(graph, arguments, caller)
                })
            });
        Self { builder, ..self }
    }
}

/// Carries out a call, and tells subscribers what changed since the last one.
async fn attended<T, Fut>(
    graph: Graph,
    ctx: Context,
    handler: impl FnOnce(Graph, String) -> Fut,
) -> ToolResult<T>
where
    Fut: Future<Output = ToolResult<T>>,
{
    graph.attend().await?;
    let outcome = handler(graph.clone(), caller(&ctx)).await;
    graph.announce(ctx.service()).await;
    outcome
}

/// Who calls, for the audit trail: the client's own name for itself, which proves nothing, and the
/// principal, which does.
fn caller(ctx: &Context) -> String {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let principal = ctx.peer().principal.as_str();
    let client = ctx.peer().client_info.as_ref();
    match client.map(Raw::decode::<Named>) {
        Some(Ok(Named { name })) => format!("{principal} ({})", excerpt(&name, 64)),
        _ => principal.to_owned(),
    }
}

/// S000-22 says how the answer begins, S000-49 that it is JSON: it is both, in two blocks.
fn answer(found: &Found) -> ToolResult {
    let mut paragraphs = vec![format!("Found {} relevant context nodes", found.count)];
    let hits = (1..).zip(&found.results);
    paragraphs.extend(hits.map(|(number, hit)| format!("{number}. {}", line(hit))));
    let blocks = [
        ContentBlock::text(paragraphs.join("\n\n")),
        ContentBlock::text(json::encoded(found)?.as_str()),
    ];
    Ok(CallToolResult::new(blocks))
}

fn line(hit: &Hit) -> String {
    let node = &hit.node;
    let name = node.key.as_ref().unwrap_or(&node.id);
    let content = excerpt(&node.content, EXCERPT);
    format!("{}/{name}: {content}", node.namespace)
}
