//! The tools of the task list.

mod arguments;

use plexus_mcp_core::{Builder, LocalService};
use schemars::JsonSchema;
use serde::Serialize;

use self::arguments::{
    Blocker, BlockersOf, Claim, Create, Delete, Filtered, Next, One, Release, Renew, Updated,
};
use super::error::TaskError;
use super::model::{Summary, Task};
use super::resources::resources;
use super::tasks::{ListedTasks, Tasks};
use crate::names::Names;
use crate::tool_annotations::{destructive, idempotent, non_destructive, read_only};
use crate::tool_set::{ToolData, ToolSet};

pub(super) use self::arguments::MAX_LISTED;

/// Every method of the namespace `task`, in the order in which they are listed.
pub const METHODS: [&str; 12] = [
    "create_task",
    "list_tasks",
    "get_task",
    "update_task",
    "delete_task",
    "add_blocker",
    "remove_blocker",
    "get_blockers",
    "next_tasks",
    "claim_task",
    "renew_claim",
    "release_claim",
];

/// The methods that the specification of Bossman has.
pub const BOSSMAN_METHODS: &[&str] = METHODS.split_at(8).0;

/// Adds the tools and resources of a task list.
pub fn task(builder: Builder, names: Names, tasks: &Tasks) -> Builder {
    resources(tools(builder, names, tasks), tasks)
}

/// Adds only the eight tools of the specification of Bossman, under its names (S002-20).
pub fn bossman_tasks(builder: Builder, tasks: &Tasks) -> Builder {
    let builder = tools(builder, Names::Flat, tasks);
    let later = METHODS
        .iter()
        .filter(|method| !BOSSMAN_METHODS.contains(method));
    later.fold(builder, |builder, method| builder.remove_tool(method))
}

impl ToolData for Tasks {
    type Error = TaskError;

    fn notifying(&self, service: &LocalService) -> Self {
        Self::notifying(self, service)
    }

    /// The resource and the template of the task list never change.
    async fn refresh_lists(&self, _: &LocalService) {}
}

fn tools(builder: Builder, names: Names, tasks: &Tasks) -> Builder {
    let tool = |method, title| names.tool("task", method).title(title);
    let tools = ToolSet {
        builder,
        data: tasks,
    }
    .tool(
        non_destructive(tool("create_task", "Create task")).description("Create a new task"),
        async |tasks: Tasks, new: Create| tasks.create(new.into()).await.map(Summary::from),
    )
    .tool(
        read_only(tool("list_tasks", "List tasks"))
            .description("List tasks, the most urgent first and then the newest"),
        async |tasks: Tasks, filter: Filtered| tasks.list(filter.into()).await.map(TaskList::from),
    )
    .tool(
        read_only(tool("get_task", "Get task")).description("Get a task by its id"),
        async |tasks: Tasks, One { id }: One| tasks.get(id).await,
    )
    .tool(
        idempotent(tool("update_task", "Update task")).description(
            "Change a task; members that are left out stay as they are. A new status also sets \
                 started_at and completed_at",
        ),
        async |tasks: Tasks, updated: Updated| {
            let (id, update) = updated.into();
            tasks.update(id, update).await
        },
    )
    .tool(
        destructive(tool("delete_task", "Delete task"))
            .description("Delete a task; its subtasks only if cascade is true"),
        async |tasks: Tasks, Delete { id, cascade }: Delete| {
            let deleted = tasks.delete(id, cascade).await;
            deleted.map(|deleted| Deleted { deleted })
        },
    )
    .tool(
        idempotent(tool("add_blocker", "Add blocker"))
            .description("Make a task wait until another is completed"),
        async |tasks: Tasks, add: Blocker| tasks.add_blocker(add.task_id, add.blocked_by_id).await,
    )
    .tool(
        non_destructive(tool("remove_blocker", "Remove blocker"))
            .description("Make a task no longer wait for another"),
        async |tasks: Tasks, remove: Blocker| {
            tasks
                .remove_blocker(remove.task_id, remove.blocked_by_id)
                .await
        },
    )
    .tool(
        read_only(tool("get_blockers", "Get blockers"))
            .description("List the tasks that must be completed before this one"),
        async |tasks: Tasks, BlockersOf { task_id }: BlockersOf| {
            let blockers = tasks.blockers(task_id.as_str()).await?;
            let blockers = blockers.into_iter().map(Summary::from).collect();
            Ok(Blockers { task_id, blockers })
        },
    );
    claims(tools, names).builder
}

fn claims(tools: ToolSet<'_, Tasks>, names: Names) -> ToolSet<'_, Tasks> {
    let tool = |method, title| names.tool("task", method).title(title);
    tools
        .tool(
            read_only(tool("next_tasks", "Next tasks")).description(
                "List the tasks that can be worked on now, the most urgent first and then the \
                 oldest: pending tasks without open blockers, and tasks whose claim has expired",
            ),
            async |tasks: Tasks, Next { limit }: Next| {
                let ready = tasks.next(limit).await;
                ready.map(|tasks| Ready { tasks })
            },
        )
        .tool(
            non_destructive(tool("claim_task", "Claim task")).description(
                "Claim a task, so that no other agent works on it: it is in progress then. \
                 Without an id, the first task that is ready is claimed",
            ),
            async |tasks: Tasks, claim: Claim| {
                let lease = claim.lease();
                tasks.claim(claim.id, claim.owner, lease).await
            },
        )
        .tool(
            idempotent(tool("renew_claim", "Renew claim"))
                .description("Extend the claim of a task, counted from now"),
            async |tasks: Tasks, renew: Renew| {
                let lease = renew.lease();
                tasks.renew(renew.id, renew.owner, lease).await
            },
        )
        .tool(
            non_destructive(tool("release_claim", "Release claim"))
                .description("Release a claimed task: it is pending again"),
            async |tasks: Tasks, Release { id, owner }: Release| tasks.release(id, owner).await,
        )
}

/// A list of tasks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct TaskList {
    /// The tasks, up to the limit and to the maximum size of a response.
    tasks: Vec<Task>,
    /// The number of all tasks that match.
    total: u64,
}

impl From<ListedTasks> for TaskList {
    fn from(found: ListedTasks) -> Self {
        Self {
            tasks: found.tasks,
            total: found.total,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// The ids of all tasks that were deleted.
    deleted: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Blockers {
    /// The id of the task.
    task_id: String,
    /// The tasks that must be completed before it.
    blockers: Vec<Summary>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Ready {
    /// The tasks that are ready, the most urgent first.
    tasks: Vec<Task>,
}
