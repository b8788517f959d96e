//! `plexus task`: the task list, for people.

mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use plexus_activations::task::{Filter, NewTask, Status, Task, Tasks, Update};

use crate::data;
use crate::output::{as_json, print};
use crate::serve::on_runtime;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus task add Mow the lawn --priority 2
  plexus task add Rake it --after task_01970c3e2a6b7f3c9d8e5a4b3c2d1e0f
  plexus task next
  plexus task done task_01970c3e2a6b7f3c9d8e5a4b3c2d1e0f --result 'Short grass'";

/// What to do with the task list.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,

    /// Print JSON, as the tools give it.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Add a task, and print its id.
    Add {
        /// What is to be done.
        #[arg(required = true, value_name = "DESCRIPTION")]
        description: Vec<String>,
        /// The task that this is a part of.
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
        /// From 1, the most urgent, to 5.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
        priority: u8,
        /// What one needs to know to do it.
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
        /// A task that must be completed before it. This may be repeated.
        #[arg(long, value_name = "ID")]
        after: Vec<String>,
    },
    /// List tasks, the most urgent first and then the newest.
    List {
        /// Only tasks in this state.
        #[arg(long, value_enum)]
        status: Option<State>,
        /// Only parts of this task.
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Say that a task is completed.
    Done {
        /// The task.
        id: String,
        /// What came of it.
        #[arg(long, value_name = "TEXT")]
        result: Option<String>,
    },
    /// List what can be worked on now, first things first.
    Next {
        /// At most so many.
        #[arg(long, default_value_t = 10)]
        limit: u32,
    },
    /// Show all tasks, each with its parts below it.
    Tree,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum State {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl From<State> for Status {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::InProgress => Self::InProgress,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
        }
    }
}

/// Does it, and prints what came of it.
pub(crate) fn run(arguments: TaskArgs) -> anyhow::Result<ExitCode> {
    on_runtime(async {
        let tasks = data::open()?.tasks;
        print(&answer(&tasks, arguments).await?)?;
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
            let filter = Filter {
                status: status.map(Into::into),
                parent_id: parent,
                limit,
            };
            let found = tasks.list(filter).await?;
            let left_out = found.total.saturating_sub(found.tasks.len() as u64);
            let shown = lines(&found.tasks, json)?;
            if left_out > 0 && !json {
                Ok(format!("{shown}and {left_out} more\n"))
            } else {
                Ok(shown)
            }
        }
        TaskCommand::Done { id, result } => {
            let update = Update {
                status: Some(Status::Completed),
                result,
                ..Update::default()
            };
            let task = tasks.update(id, update).await?;
            if json {
                as_json(&task)
            } else {
                Ok(show::line(&task))
            }
        }
        TaskCommand::Next { limit } => lines(&tasks.next(limit).await?, json),
        TaskCommand::Tree => {
            let all = Filter {
                status: None,
                parent_id: None,
                limit: u32::MAX,
            };
            let found = tasks.list(all).await?;
            if json {
                as_json(&found.tasks)
            } else {
                Ok(show::tree(&found.tasks))
            }
        }
    }
}

fn lines(tasks: &[Task], json: bool) -> anyhow::Result<String> {
    if json {
        as_json(&tasks)
    } else {
        Ok(tasks.iter().map(show::line).collect())
    }
}
