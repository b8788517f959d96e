//! The task list and its tasks as resources.

use plexus_mcp_core::{Builder, Context, Fault, Resource, ResourceContents, ResourceTemplate};
use serde::{Deserialize, Serialize};

use super::error::TaskError;
use super::tasks::{TaskFilter, Tasks};
use super::tools::{MAX_LISTED, TaskList};
use crate::external_changes::json_hash;
use crate::json::{self, JSON};

/// The URI of the task list.
pub(super) const LIST: &str = "task://list";

/// The prefix of the URIs of all tasks.
const SCHEME: &str = "task://";
const TEMPLATE: &str = "task://{id}";

/// The URI of one task.
pub(super) fn uri(id: &str) -> String {
    format!("task://{id}")
}

/// Adds the resource of the task list, and a template for single tasks.
pub(super) fn resources(builder: Builder, tasks: &Tasks) -> Builder {
    let all = tasks.clone();
    let one = tasks.clone();
    builder
        .resource(
            Resource::new(LIST, "tasks")
                .title("Tasks")
                .description("The tasks, the most urgent first and then the newest")
                .mime_type(JSON),
            move |uri: String, _: Context| {
                let tasks = all.clone();
                async move { contents(uri, tasks.list(everything()).await.map(TaskList::from)) }
            },
        )
        .template(
            ResourceTemplate::new(TEMPLATE, "task")
                .title("Task")
                .description("One task")
                .mime_type(JSON),
            move |uri: String, Variables { id }: Variables, _: Context| {
                let tasks = one.clone();
                async move { contents(uri, tasks.get(id).await) }
            },
        )
}

/// The hash of a resource's content, to detect changes; `None` if there is no such resource.
pub(crate) async fn resource_hash(tasks: &Tasks, uri: &str) -> Result<Option<u64>, TaskError> {
    if uri == LIST {
        let found = tasks.list(everything()).await?;
        return Ok(Some(json_hash(&TaskList::from(found))));
    }
    let id = uri.strip_prefix(SCHEME).unwrap_or(uri);
    match tasks.get(id).await {
        Ok(task) => Ok(Some(json_hash(&task))),
        Err(TaskError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn everything() -> TaskFilter {
    TaskFilter {
        status: None,
        parent_id: None,
        limit: MAX_LISTED,
    }
}

#[derive(Deserialize)]
struct Variables {
    id: String,
}

fn contents<T: Serialize>(
    uri: String,
    read: Result<T, TaskError>,
) -> Result<ResourceContents, Fault> {
    let read = read.map_err(|error| error.into_fault(uri.clone()))?;
    json::contents(uri, &read)
}
