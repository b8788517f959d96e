//! Resolves handles in trees, which point to tasks, nodes of the context graph and nodes of trees.

use std::sync::Arc;

use plexus_mcp_core::Boxed;

use crate::arbor::{Handle, Resolver, Trees};
use crate::context::Graph;
use crate::task::Tasks;

/// Makes the trees resolve handles to tasks, nodes of the context graph and nodes of trees:
/// `task@1::task:ID`, `context@1::node:ID` and `arbor@1::node:TREE:NODE`.
pub(super) fn with_resolvers(trees: Trees, tasks: &Tasks, context: &Graph) -> Trees {
    let (tasks, context, others) = (tasks.clone(), context.clone(), trees.clone());
    let task = resolver(move |handle| {
        let (tasks, [id]) = (tasks.clone(), meta("task", handle)?);
        Some(Box::pin(async move {
            let task = tasks.get(id).await.ok()?;
            Some(format!("{}: {}", task.status.as_str(), task.description))
        }))
    });
    let memory = resolver(move |handle| {
        let (context, [id]) = (context.clone(), meta("node", handle)?);
        Some(Box::pin(async move {
            Some(context.get(&id).await.ok()?.node.content)
        }))
    });
    let node = resolver(move |handle| {
        let (trees, [tree, node]) = (others.clone(), meta("node", handle)?);
        Some(Box::pin(async move {
            trees.node(tree, node).await.ok()?.content
        }))
    });
    trees
        .resolving("task", task)
        .resolving("context", memory)
        .resolving("arbor", node)
}

fn resolver(
    found: impl Fn(Handle) -> Option<Boxed<Option<String>>> + Send + Sync + 'static,
) -> Resolver {
    Arc::new(move |handle| match found(handle) {
        Some(text) => text,
        None => Box::pin(std::future::ready(None)),
    })
}

/// The metadata of a handle, if it has this method and `N` parts.
fn meta<const N: usize>(method: &str, handle: Handle) -> Option<[String; N]> {
    if handle.method != method {
        return None;
    }
    handle.meta.try_into().ok()
}
