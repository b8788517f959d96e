//! Tasks as tools.

mod arguments;

use plexus_service::{Builder, LocalService};
use schemars::JsonSchema;
use serde::Serialize;

use self::arguments::{
    Blocker, BlockersOf, Claim, Create, Delete, Filtered, Next, One, Release, Renew, Updated,
};
use super::error::TaskError;
use super::model::{Summary, Task};
use super::resources::resources;
use super::tasks::{Found, Tasks};
use crate::hints::{changing, destructive, idempotent, reading};
use crate::names::Names;
use crate::tools::{Shown, Tools};

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

/// Those that the founding system has.
pub const FOUNDING_METHODS: &[&str] = METHODS.split_at(8).0;

/// Adds the tools and resources of a task list.
pub fn task(builder: Builder, names: Names, tasks: &Tasks) -> Builder {
    resources(tools(builder, names, tasks), tasks)
}

/// Adds the eight tools of the founding system, under its names, and nothing else (S002-20).
pub fn founding_task(builder: Builder, tasks: &Tasks) -> Builder {
    let builder = tools(builder, Names::Flat, tasks);
    let later = METHODS
        .iter()
        .filter(|method| !FOUNDING_METHODS.contains(method));
    later.fold(builder, |builder, method| builder.remove_tool(method))
}

impl Shown for Tasks {
    type Error = TaskError;

    fn announcing_to(&self, service: &LocalService) -> Self {
        Self::announcing_to(self, service)
    }

    /// The list and the template are always there.
    async fn offer(&self, _: &LocalService) {}
}

fn tools(builder: Builder, names: Names, tasks: &Tasks) -> Builder {
    let tool = |method, title| names.tool("task", method).title(title);
    let tools = Tools { builder, of: tasks }
        .tool(
            changing(tool("create_task", "Create task")).description("Create a new task"),
            async |tasks: Tasks, new: Create| tasks.create(new.into()).await.map(Summary::from),
        )
        .tool(
            reading(tool("list_tasks", "List tasks"))
                .description("List tasks, the most urgent first and then the newest"),
            async |tasks: Tasks, filter: Filtered| tasks.list(filter.into()).await.map(List::from),
        )
        .tool(
            reading(tool("get_task", "Get task")).description("Get one task"),
            async |tasks: Tasks, One { id }: One| tasks.get(id).await,
        )
        .tool(
            idempotent(tool("update_task", "Update task")).description(
                "Change a task; what is left out stays as it is. Tells when work on it began and \
                 ended by its status",
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
                .description("Let a task wait until another is completed"),
            async |tasks: Tasks, add: Blocker| {
                tasks.add_blocker(add.task_id, add.blocked_by_id).await
            },
        )
        .tool(
            changing(tool("remove_blocker", "Remove blocker"))
                .description("Let a task no longer wait for another"),
            async |tasks: Tasks, remove: Blocker| {
                tasks
                    .remove_blocker(remove.task_id, remove.blocked_by_id)
                    .await
            },
        )
        .tool(
            reading(tool("get_blockers", "Get blockers"))
                .description("List the tasks that must be completed before this one"),
            async |tasks: Tasks, BlockersOf { task_id }: BlockersOf| {
                let blockers = tasks.blockers(task_id.as_str()).await?;
                let blockers = blockers.into_iter().map(Summary::from).collect();
                Ok(Blockers { task_id, blockers })
            },
        );
    claims(tools, names).builder
}

fn claims(tools: Tools<'_, Tasks>, names: Names) -> Tools<'_, Tasks> {
    let tool = |method, title| names.tool("task", method).title(title);
    tools
        .tool(
            reading(tool("next_tasks", "Next tasks")).description(
                "List the tasks that can be worked on now, the most urgent first and then the \
                 oldest: pending ones that wait for no other, and ones whose claim has run out",
            ),
            async |tasks: Tasks, Next { limit }: Next| {
                let ready = tasks.next(limit).await;
                ready.map(|tasks| Ready { tasks })
            },
        )
        .tool(
            changing(tool("claim_task", "Claim task")).description(
                "Take a task to work on, so that no other agent does: it is in progress then. \
                 Without an id, the first task that is ready",
            ),
            async |tasks: Tasks, claim: Claim| {
                let lease = claim.lease();
                tasks.claim(claim.id, claim.owner, lease).await
            },
        )
        .tool(
            idempotent(tool("renew_claim", "Renew claim"))
                .description("Keep a claimed task for longer, counted from now"),
            async |tasks: Tasks, renew: Renew| {
                let lease = renew.lease();
                tasks.renew(renew.id, renew.owner, lease).await
            },
        )
        .tool(
            changing(tool("release_claim", "Release claim"))
                .description("Give a claimed task back: it is pending again"),
            async |tasks: Tasks, Release { id, owner }: Release| tasks.release(id, owner).await,
        )
}

/// Several tasks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct List {
    /// As many of them as were asked for and fit into one answer.
    tasks: Vec<Task>,
    /// How many there are.
    total: u64,
}

impl From<Found> for List {
    fn from(found: Found) -> Self {
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
    /// The task that waits.
    task_id: String,
    /// What it waits for until they are completed.
    blockers: Vec<Summary>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Ready {
    /// What can be worked on, first things first.
    tasks: Vec<Task>,
}
