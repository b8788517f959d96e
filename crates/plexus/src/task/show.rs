//! Tasks as text.

use std::collections::HashMap;

use plexus_mcp_builtins::task::{Task, TaskError, TaskStatus, Tasks};

use crate::printable::one_line;

/// The number of open blockers of each task.
pub(super) struct Waiting(HashMap<String, usize>);

impl Waiting {
    /// Counts the open blockers of these tasks.
    pub(super) async fn of(shown: &[Task], tasks: &Tasks) -> Result<Self, TaskError> {
        let mut waiting = HashMap::new();
        let blocked = |task: &&Task| !task.status.is_over() && !task.blocked_by.is_empty();
        for task in shown.iter().filter(blocked) {
            let blockers = tasks.blockers(task.id.as_str()).await?;
            let open = blockers
                .iter()
                .filter(|it| it.status != TaskStatus::Completed);
            waiting.insert(task.id.clone(), open.count());
        }
        Ok(Self(waiting))
    }
}

/// One task in one line.
pub(super) fn line(task: &Task, waiting: &Waiting) -> String {
    let waiting = match waiting.0.get(&task.id).copied().unwrap_or_default() {
        0 => String::new(),
        1 => ", after 1 other".to_owned(),
        many => format!(", after {many} others"),
    };
    let claimed = task
        .claimed_by
        .as_deref()
        .map_or_else(String::new, |owner| {
            format!(", claimed by {}", one_line(owner.trim()))
        });
    format!(
        "{} {}  {}  (priority {}{waiting}{claimed})\n",
        mark(task.status),
        task.id,
        one_line(task.description.trim()),
        task.priority,
    )
}

/// All fields of a task.
pub(super) fn whole(task: &Task, waiting: &Waiting) -> String {
    let mut shown = line(task, waiting);
    let facts = [
        ("part of", task.parent_id.as_deref()),
        ("created", Some(task.created_at.as_str())),
        ("started", task.started_at.as_deref()),
        ("ended", task.completed_at.as_deref()),
        ("changed", Some(task.updated_at.as_str())),
        ("claimed until", task.claimed_until.as_deref()),
    ];
    let after = task
        .blocked_by
        .iter()
        .map(|id| ("after", Some(id.as_str())));
    for (name, value) in facts.into_iter().chain(after) {
        if let Some(value) = value {
            shown.extend(["  ", name, " ", value, "\n"]);
        }
    }
    let texts = [("Context", &task.context), ("Result", &task.result)];
    for (name, text) in texts {
        if let Some(text) = text {
            shown.extend(["\n", name, ":\n", text.trim_end(), "\n"]);
        }
    }
    shown
}

/// All tasks as a tree, the most urgent first.
pub(super) fn tree(tasks: &[Task], waiting: &Waiting) -> String {
    let mut parts: HashMap<Option<&str>, Vec<&Task>> = HashMap::new();
    for task in tasks {
        parts
            .entry(task.parent_id.as_deref())
            .or_default()
            .push(task);
    }
    for siblings in parts.values_mut() {
        // The last is taken first.
        siblings.sort_by_key(|task| std::cmp::Reverse((task.priority, &task.created_at, &task.id)));
    }
    let mut shown = String::new();
    // Not recursive, since tasks may be nested to any depth.
    let mut open = vec![parts.remove(&None).unwrap_or_default()];
    while let Some(siblings) = open.last_mut() {
        let Some(task) = siblings.pop() else {
            open.pop();
            continue;
        };
        shown += &"  ".repeat(open.len() - 1);
        shown += &line(task, waiting);
        if let Some(below) = parts.remove(&Some(task.id.as_str())) {
            open.push(below);
        }
    }
    shown
}

fn mark(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "[ ]",
        TaskStatus::InProgress => "[>]",
        TaskStatus::Completed => "[x]",
        TaskStatus::Failed => "[!]",
    }
}
