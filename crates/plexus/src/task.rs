//! `plexus task`: the task list on the command line.

mod show;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use plexus_mcp_builtins::task::{NewTask, Task, TaskError, TaskFilter, TaskStatus, Tasks, Update};

use self::show::Waiting;
use crate::data;
use crate::output::{as_json, if_nothing, print_data};
use crate::runtime::on_runtime;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus task add Mow the lawn --priority 2
  plexus task add Rake it --after task_01970c3e2a6b7f3c9d8e5a4b3c2d1e0f
  plexus task next
  plexus task done task_01970c3e2a6b7f3c9d8e5a4b3c2d1e0f --result 'Short grass'";

/// Arguments of `plexus task`.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,

    /// Print JSON, as the tools return it.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Add a task, and print its id.
    Add {
        /// The description.
        #[arg(required = true, value_name = "DESCRIPTION")]
        description: Vec<String>,
        /// The parent task.
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
        /// From 1, the most urgent, to 5.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
        priority: u8,
        /// Background information for the person who works on it.
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
        /// A task that must be completed first. This option may be repeated.
        #[arg(long, value_name = "ID")]
        after: Vec<String>,
    },
    /// List tasks, the most urgent first and then the newest.
    List {
        /// Only tasks in this state.
        #[arg(long, value_enum)]
        status: Option<StatusArg>,
        /// Only subtasks of this task.
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
        /// The most tasks to print.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show all fields of a task.
    Show {
        /// The task.
        id: String,
    },
    /// Mark a task as completed.
    Done {
        /// The task.
        id: String,
        /// The result.
        #[arg(long, value_name = "TEXT")]
        result: Option<String>,
    },
    /// List the tasks that can be worked on now, the most urgent first.
    Next {
        /// The most tasks to print.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show all tasks as a tree.
    Tree,
    /// Delete a task, and print the ids of all deleted tasks.
    Delete {
        /// The task.
        id: String,
        /// Delete its subtasks as well.
        #[arg(long)]
        cascade: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StatusArg {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl From<StatusArg> for TaskStatus {
    fn from(state: StatusArg) -> Self {
        match state {
            StatusArg::Pending => Self::Pending,
            StatusArg::InProgress => Self::InProgress,
            StatusArg::Completed => Self::Completed,
            StatusArg::Failed => Self::Failed,
        }
    }
}

/// Runs `plexus task`.
pub(crate) fn run(arguments: TaskArgs) -> anyhow::Result<ExitCode> {
    on_runtime(async {
        let data = data::when_needed()?;
        let answer = answer(&data.builtins.tasks, arguments).await?;
        print_data(if_nothing(&answer, "no tasks\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn answer(tasks: &Tasks, arguments: TaskArgs) -> anyhow::Result<String> {
    let TaskArgs { command, json } = arguments;
    match command {
        TaskCommand::Add {
            description,
            parent,
            priority,
            context,
            after,
        } => {
            let new = NewTask {
                description: description.join(" "),
                parent_id: parent,
                priority,
                context,
            };
            let task = tasks.create_after(new, after).await?;
            if json {
                as_json(&task)
            } else {
                Ok(task.id + "\n")
            }
        }
        TaskCommand::List {
            status,
            parent,
            limit,
        } => {
            let filter = TaskFilter {
                status: status.map(Into::into),
                parent_id: parent,
                limit,
            };
            let found = tasks.list(filter).await?;
            let shown = lines(&found.tasks, tasks, json).await?;
            let left_out = found.total.saturating_sub(found.tasks.len() as u64);
            Ok(and_more(shown, left_out, json))
        }
        TaskCommand::Show { id } => {
            let task = [tasks.get(id).await?];
            let waiting = Waiting::of(&task, tasks).await?;
            let [task] = task;
            if json {
                as_json(&task)
            } else {
                Ok(show::whole(&task, &waiting))
            }
        }
        TaskCommand::Done { id, result } => {
            let update = Update {
                status: Some(TaskStatus::Completed),
                result,
                ..Update::default()
            };
            let task = tasks.update(id, update).await?;
            if json {
                as_json(&task)
            } else {
                lines(&[task], tasks, json).await
            }
        }
        TaskCommand::Next { limit } => lines(&tasks.next(limit).await?, tasks, json).await,
        TaskCommand::Tree => {
            let all = TaskFilter {
                status: None,
                parent_id: None,
                limit: u32::MAX,
            };
            let found = tasks.list(all).await?;
            if json {
                return as_json(&found.tasks);
            }
            let waiting = Waiting::of(&found.tasks, tasks).await?;
            let shown = show::tree(&found.tasks, &waiting);
            let left_out = found.total.saturating_sub(shown.lines().count() as u64);
            Ok(and_more(shown, left_out, json))
        }
        TaskCommand::Delete { id, cascade } => {
            let deleted = match tasks.delete(id, cascade).await {
                Err(TaskError::HasSubtasks { id, subtasks }) => {
                    bail!("task {id} has parts ({subtasks}); to delete them too, use --cascade")
                }
                deleted => deleted?,
            };
            if json {
                as_json(&deleted)
            } else {
                Ok(deleted.into_iter().map(|id| id + "\n").collect())
            }
        }
    }
}

fn and_more(shown: String, left_out: u64, json: bool) -> String {
    if left_out > 0 && !json {
        format!("{shown}and {left_out} more\n")
    } else {
        shown
    }
}

async fn lines(shown: &[Task], tasks: &Tasks, json: bool) -> anyhow::Result<String> {
    if json {
        return as_json(&shown);
    }
    let waiting = Waiting::of(shown, tasks).await?;
    Ok(shown
        .iter()
        .map(|task| show::line(task, &waiting))
        .collect())
}
