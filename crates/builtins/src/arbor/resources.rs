//! Trees as resources (S003-23).
//!
//! The newest active trees are listed; all trees and nodes can be read by their URIs.

use std::collections::BTreeMap;

use plexus_mcp_core::{
    Builder, Context, Fault, LocalService, Resource, ResourceContents, ResourceTemplate, Section,
};
use plexus_mcp_store::rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::error::ArborError;
use super::model::{State, TreeSummary};
use super::tables;
use super::trees::Trees;
use crate::catalogue_diff::catalogue_diff;
use crate::external_changes::json_hash;
use crate::json::{self, JSON};

/// The URI of the resource that lists all active trees.
pub(super) const LIST: &str = "arbor://trees";

const TREE: &str = "arbor://tree/{tree_id}";
const NODE: &str = "arbor://tree/{tree_id}/node/{node_id}";
const HEAD: &str = "arbor://tree/{tree_id}/head";

const PREFIX: &str = "arbor://tree/";

/// The maximum number of trees that are listed as resources.
const MAX_LISTED: u32 = 100;

/// The maximum number of ids proposed for a completion. A client shows no more.
const MAX_PROPOSED: u32 = 101;

/// The URI of the resource of one tree, without the texts of its nodes.
pub(super) fn tree_uri(tree: &str) -> String {
    format!("{PREFIX}{tree}")
}

/// The URI of the resource of one node.
pub(super) fn node_uri(tree: &str, node: &str) -> String {
    format!("{PREFIX}{tree}/node/{node}")
}

/// The URI of the resource of the head of a tree.
pub(super) fn head_uri(tree: &str) -> String {
    format!("{PREFIX}{tree}/head")
}

/// Adds the resources of trees. Subscribers are notified of every change made through `trees`.
pub(super) fn resources(builder: Builder, trees: &Trees) -> Builder {
    let all = trees.clone();
    let builder = builder.resource(
        Resource::new(LIST, "trees")
            .title("Trees")
            .description("The ids of the active trees, the newest first")
            .mime_type(JSON),
        move |uri: String, _: Context| {
            let trees = all.clone();
            async move {
                let tree_ids = trees.list(State::Active).await;
                contents(uri, tree_ids.map(|tree_ids| TreeIds { tree_ids }))
            }
        },
    );
    let builder = templates(builder, trees);
    let builder = completions(builder, trees);
    // The trees that exist already. Later, the tools update the list.
    let now = trees.now();
    let listed = trees.store().read_blocking(move |db| listed(db, now));
    match listed {
        Ok(listed) => listed
            .iter()
            .fold(builder, |builder, tree| with_tree(builder, trees, tree)),
        Err(error) => {
            tracing::warn!(%error, "cannot list trees until one is created");
            builder
        }
    }
}

impl Trees {
    /// Updates the tree resources that `service` lists: one for each active tree.
    pub async fn refresh_lists(&self, service: &LocalService) {
        let _guard = self.listing.lock().await;
        let now = self.now();
        let trees = match self.read(move |db| listed(db, now)).await {
            Ok(trees) => trees,
            Err(error) => {
                tracing::warn!(%error, "cannot update the list of trees");
                return;
            }
        };
        let definitions = trees
            .iter()
            .map(|tree| (tree_uri(&tree.id), definition(tree).to_raw()));
        let definitions = definitions.collect();
        let Some(catalogue_diff) = catalogue_diff(service, Section::Resources, PREFIX, definitions)
        else {
            return;
        };
        let edited = service.edit(|builder| {
            let removed = catalogue_diff.removed.iter();
            let builder = removed.fold(builder, |builder, uri| builder.remove_resource(uri));
            let is_new = |tree: &&TreeSummary| catalogue_diff.added.contains(&tree_uri(&tree.id));
            let new = trees.iter().filter(is_new);
            new.fold(builder, |builder, tree| with_tree(builder, self, tree))
        });
        if let Err(error) = edited {
            tracing::error!(%error, "cannot list the trees");
        }
    }
}

/// The hash of a resource's content, to detect changes; `None` if there is no such resource.
pub(crate) async fn resource_hash(trees: &Trees, uri: &str) -> Result<Option<u64>, ArborError> {
    if uri == LIST {
        return Ok(Some(json_hash(&trees.list(State::Active).await?)));
    }
    let path = uri.strip_prefix(PREFIX).unwrap_or_default();
    let parts: Vec<_> = path.split('/').collect();
    let found = match parts[..] {
        [tree] => trees.skeleton(tree).await.map(|tree| json_hash(&tree)),
        [tree, "head"] => trees.head(tree).await.map(|node| json_hash(&node)),
        [tree, "node", "root"] => trees.root(tree).await.map(|node| json_hash(&node)),
        [tree, "node", node] => trees.node(tree, node).await.map(|node| json_hash(&node)),
        _ => return Ok(None),
    };
    match found {
        Ok(hash) => Ok(Some(hash)),
        Err(ArborError::TreeNotFound(_) | ArborError::NodeNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the resource templates of trees, nodes and heads.
fn templates(builder: Builder, trees: &Trees) -> Builder {
    let (of_tree, of_node, of_head) = (trees.clone(), trees.clone(), trees.clone());
    builder
        .template(
            ResourceTemplate::new(TREE, "tree")
                .title("Tree")
                .description("A tree of texts, with the structure of its nodes")
                .mime_type(JSON),
            move |uri: String, OfTree { tree_id }: OfTree, _: Context| {
                let trees = of_tree.clone();
                async move { contents(uri, trees.skeleton(tree_id).await) }
            },
        )
        .template(
            ResourceTemplate::new(NODE, "node")
                .title("Node")
                .description(
                    "A node of a tree, with its role and text; the root is also called `root`",
                )
                .mime_type(JSON),
            move |uri: String, OfNode { tree_id, node_id }: OfNode, _: Context| {
                let trees = of_node.clone();
                async move {
                    let node = match node_id.as_str() {
                        "root" => trees.root(tree_id).await,
                        _ => trees.node(tree_id, node_id).await,
                    };
                    contents(uri, node)
                }
            },
        )
        .template(
            ResourceTemplate::new(HEAD, "head")
                .title("Head")
                .description("The node where the conversation of a tree continues")
                .mime_type(JSON),
            move |uri: String, OfTree { tree_id }: OfTree, _: Context| {
                let trees = of_head.clone();
                async move { contents(uri, trees.head(tree_id).await) }
            },
        )
}

/// Adds completion of tree ids and node ids.
fn completions(mut builder: Builder, trees: &Trees) -> Builder {
    for template in [TREE, NODE, HEAD] {
        let trees = trees.clone();
        builder = builder.complete_template(template, "tree_id", move |typed: String, _| {
            let trees = trees.clone();
            async move { trees.proposed_trees(typed).await.unwrap_or_default() }
        });
    }
    let trees = trees.clone();
    builder.complete_template(
        NODE,
        "node_id",
        move |typed: String, known: BTreeMap<String, String>| {
            let trees = trees.clone();
            async move {
                let Some(tree) = known.get("tree_id") else {
                    return Vec::new();
                };
                let proposed = trees.proposed_nodes(tree.clone(), typed).await;
                proposed.unwrap_or_default()
            }
        },
    )
}

impl Trees {
    async fn proposed_trees(&self, typed: String) -> Result<Vec<String>, ArborError> {
        let statement = "SELECT id FROM arbor_trees WHERE substr(id, 1, length(?1)) = ?1
                         ORDER BY id DESC LIMIT ?2";
        self.read(move |db| Ok(tables::texts(db, statement, (&typed, MAX_PROPOSED))?))
            .await
    }

    async fn proposed_nodes(&self, tree: String, typed: String) -> Result<Vec<String>, ArborError> {
        let statement = "SELECT id FROM arbor_nodes
                         WHERE tree_id = ?1 AND substr(id, 1, length(?2)) = ?2
                         ORDER BY seq DESC LIMIT ?3";
        self.read(move |db| Ok(tables::texts(db, statement, (&tree, &typed, MAX_PROPOSED))?))
            .await
    }
}

#[derive(Serialize)]
struct TreeIds {
    tree_ids: Vec<String>,
}

#[derive(Deserialize)]
struct OfTree {
    tree_id: String,
}

#[derive(Deserialize)]
struct OfNode {
    tree_id: String,
    node_id: String,
}

fn listed(db: &Connection, now: jiff::Timestamp) -> Result<Vec<TreeSummary>, ArborError> {
    let newest = tables::trees_in(db, State::Active, now, Some(MAX_LISTED))?;
    newest.iter().map(|id| tables::tree(db, id, now)).collect()
}

fn with_tree(builder: Builder, trees: &Trees, tree: &TreeSummary) -> Builder {
    let trees = trees.notifying(None);
    let id = tree.id.clone();
    builder.resource(definition(tree), move |uri: String, _: Context| {
        let (trees, id) = (trees.clone(), id.clone());
        async move { contents(uri, trees.skeleton(id).await) }
    })
}

/// The resource of a tree. Its title is the name in the tree's metadata, if there is one.
fn definition(tree: &TreeSummary) -> Resource {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named = tree.metadata.as_ref();
    let named = named.and_then(|metadata| metadata.decode::<Named>().ok());
    let resource = Resource::new(tree_uri(&tree.id), format!("tree {}", tree.id)).mime_type(JSON);
    match named {
        Some(Named { name }) => resource.title(name),
        None => resource,
    }
}

fn contents<T: Serialize>(
    uri: String,
    read: Result<T, ArborError>,
) -> Result<ResourceContents, Fault> {
    let read = read.map_err(|error| error.into_fault(uri.clone()))?;
    json::contents(uri, &read)
}
