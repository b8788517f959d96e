//! Tasks as tools.

mod arguments;

use plexus_service::{Builder, Context, Json, Tool, ToolAnnotations, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;

use self::arguments::{
    Blocker, BlockersOf, Claim, Create, Delete, Filtered, Next, One, Release, Renew, Updated,
};
use super::model::{Summary, Task};
use super::resources::resources;
use super::tasks::{Found, Tasks};
use crate::names::Names;

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

fn tools(builder: Builder, names: Names, tasks: &Tasks) -> Builder {
    let [
        create_task,
        list_tasks,
        get_task,
        update_task,
        delete_task,
        rest @ ..,
    ] = METHODS.map(|method| names.tool("task", method));
    let [add_blocker, remove_blocker, get_blockers, rest @ ..] = rest;
    let [next_tasks, claim_task, renew_claim, release_claim] = rest;

    builder
        .tool(
            changing(create_task)
                .title("Create task")
                .description("Create a new task"),
            with(tasks, create),
        )
        .tool(
            reading(list_tasks)
                .title("List tasks")
                .description("List tasks, the most urgent first and then the newest"),
            with(tasks, list),
        )
        .tool(
            reading(get_task)
                .title("Get task")
                .description("Get one task"),
            with(tasks, get),
        )
        .tool(
            idempotent(update_task).title("Update task").description(
                "Change a task; what is left out stays as it is. Tells when work on it began and \
                 ended by its status",
            ),
            with(tasks, update),
        )
        .tool(
            destructive(delete_task)
                .title("Delete task")
                .description("Delete a task; its subtasks only if cascade is true"),
            with(tasks, delete),
        )
        .tool(
            idempotent(add_blocker)
                .title("Add blocker")
                .description("Let a task wait until another is completed"),
            with(tasks, add),
        )
        .tool(
            changing(remove_blocker)
                .title("Remove blocker")
                .description("Let a task no longer wait for another"),
            with(tasks, remove),
        )
        .tool(
            reading(get_blockers)
                .title("Get blockers")
                .description("List the tasks that must be completed before this one"),
            with(tasks, blockers),
        )
        .tool(
            reading(next_tasks).title("Next tasks").description(
                "List the tasks that can be worked on now, the most urgent first and then the \
                 oldest: pending ones that wait for no other, and ones whose claim has run out",
            ),
            with(tasks, next),
        )
        .tool(
            changing(claim_task).title("Claim task").description(
                "Take a task to work on, so that no other agent does: it is in progress then. \
                 Without an id, the first task that is ready",
            ),
            with(tasks, claim),
        )
        .tool(
            idempotent(renew_claim)
                .title("Renew claim")
                .description("Keep a claimed task for longer, counted from now"),
            with(tasks, renew),
        )
        .tool(
            changing(release_claim)
                .title("Release claim")
                .description("Give a claimed task back: it is pending again"),
            with(tasks, release),
        )
}

/// Several tasks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct List {
    /// As many of them as were asked for.
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

async fn create(tasks: Tasks, arguments: Create) -> ToolResult<Json<Summary>> {
    let task = tasks.create(arguments.into()).await?;
    Ok(Json(task.into()))
}

async fn list(tasks: Tasks, arguments: Filtered) -> ToolResult<Json<List>> {
    let found = tasks.list(arguments.into()).await?;
    Ok(Json(found.into()))
}

async fn get(tasks: Tasks, One { id }: One) -> ToolResult<Json<Task>> {
    Ok(Json(tasks.get(id).await?))
}

async fn update(tasks: Tasks, arguments: Updated) -> ToolResult<Json<Task>> {
    let (id, update) = arguments.into();
    Ok(Json(tasks.update(id, update).await?))
}

async fn delete(tasks: Tasks, Delete { id, cascade }: Delete) -> ToolResult<Json<Deleted>> {
    let deleted = tasks.delete(id, cascade).await?;
    Ok(Json(Deleted { deleted }))
}

async fn add(tasks: Tasks, arguments: Blocker) -> ToolResult<Json<Task>> {
    let Blocker {
        task_id,
        blocked_by_id,
    } = arguments;
    Ok(Json(tasks.add_blocker(task_id, blocked_by_id).await?))
}

async fn remove(tasks: Tasks, arguments: Blocker) -> ToolResult<Json<Task>> {
    let Blocker {
        task_id,
        blocked_by_id,
    } = arguments;
    Ok(Json(tasks.remove_blocker(task_id, blocked_by_id).await?))
}

async fn blockers(tasks: Tasks, BlockersOf { task_id }: BlockersOf) -> ToolResult<Json<Blockers>> {
    let blockers = tasks.blockers(task_id.as_str()).await?;
    let blockers = blockers.into_iter().map(Summary::from).collect();
    Ok(Json(Blockers { task_id, blockers }))
}

async fn next(tasks: Tasks, Next { limit }: Next) -> ToolResult<Json<Ready>> {
    let tasks = tasks.next(limit).await?;
    Ok(Json(Ready { tasks }))
}

async fn claim(tasks: Tasks, arguments: Claim) -> ToolResult<Json<Task>> {
    let lease = arguments.lease();
    let Claim { id, owner, .. } = arguments;
    Ok(Json(tasks.claim(id, owner, lease).await?))
}

async fn renew(tasks: Tasks, arguments: Renew) -> ToolResult<Json<Task>> {
    let lease = arguments.lease();
    let Renew { id, owner, .. } = arguments;
    Ok(Json(tasks.renew(id, owner, lease).await?))
}

async fn release(tasks: Tasks, Release { id, owner }: Release) -> ToolResult<Json<Task>> {
    Ok(Json(tasks.release(id, owner).await?))
}

/// A handler that is given the task list, and whose changes are announced by the service it is
/// called through.
fn with<Args, Fut>(
    tasks: &Tasks,
    handler: fn(Tasks, Args) -> Fut,
) -> impl Fn(Args, Context) -> Fut + Send + Sync + 'static
where
    Args: 'static,
    Fut: 'static,
{
    let tasks = tasks.clone();
    move |arguments, context| handler(tasks.announcing_to(context.service()), arguments)
}

fn reading(tool: Tool) -> Tool {
    tool.annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn changing(tool: Tool) -> Tool {
    tool.annotations(changes(false).idempotent(false))
}

fn idempotent(tool: Tool) -> Tool {
    tool.annotations(changes(false).idempotent(true))
}

fn destructive(tool: Tool) -> Tool {
    tool.annotations(changes(true).idempotent(false))
}

fn changes(destructively: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(destructively)
        .open_world(false)
}
