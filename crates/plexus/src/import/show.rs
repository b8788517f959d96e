//! An import, as text and JSON, without secrets.

use std::path::Path;

use serde::Serialize;

use super::plan::{ImportAction, Plan, Planned};
use crate::mcp::show::Problem;
use crate::output::as_json;
use crate::printable::one_line;

/// The result of `--undo`.
#[derive(Serialize)]
pub(super) struct Undone<'a> {
    pub(super) file: &'a Path,
    /// The removed servers.
    pub(super) removed: &'a [String],
}

#[derive(Serialize)]
struct Import<'a> {
    file: &'a Path,
    /// Whether the file was changed.
    written: bool,
    servers: Vec<PlannedServer<'a>>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
pub(crate) struct PlannedServer<'a> {
    name: &'a str,
    client: &'static str,
    from: &'a Path,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    /// The members without a counterpart.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [String],
}

/// The action for each server: `+` added, `=` exists already, `!` left out.
pub(crate) fn diff(plan: &Plan) -> String {
    let line = |text: String| one_line(&text) + "\n";
    let mut shown = String::new();
    for server in &plan.servers {
        let mark = match server.action {
            ImportAction::Added { .. } => '+',
            ImportAction::Exists { .. } => '=',
            ImportAction::OfProject { .. } | ImportAction::Unsupported { .. } => '!',
        };
        let what = match &server.action {
            ImportAction::Added { summary } => summary.clone(),
            _ => reason(&server.action).map(|reason| format!("left out: {reason}")),
        };
        let what = what.map_or_else(String::new, |what| format!("  {what}"));
        let (name, client) = (&server.name, server.client.as_str());
        let from = server.from.display();
        shown += &line(format!("{mark} {name}{what}  ({client}, {from})"));
        for note in &server.notes {
            shown += &line(format!("    note: {note}"));
        }
        if !server.left_out.is_empty() {
            let keys = server.left_out.join(", ");
            shown += &line(format!("    without a counterpart here, left out: {keys}"));
        }
    }
    shown
}

/// The result of an import.
pub(super) fn end(plan: &Plan, is_written: bool) -> String {
    let file = one_line(&plan.file.to_string_lossy());
    match (plan.additions().count(), is_written) {
        (0, _) if plan.servers.is_empty() => "no other client has servers here\n".to_owned(),
        (0, _) => "there is nothing to add\n".to_owned(),
        (count, true) => format!(
            "added {}: {file}; to undo this: plexus import --undo\n",
            servers(count)
        ),
        (count, false) => format!(
            "nothing was written; with --yes, {} would be added: {file}\n",
            servers(count)
        ),
    }
}

/// The result of `--undo`.
pub(super) fn undone(file: &Path, removed: &[String]) -> String {
    let removed = removed.join(", ");
    one_line(&format!("removed {removed}: {}", file.display())) + "\n"
}

/// The whole plan, as JSON.
pub(super) fn json(plan: &Plan, is_written: bool) -> anyhow::Result<String> {
    as_json(&Import {
        file: &plan.file,
        written: is_written,
        servers: plan.servers.iter().map(server).collect(),
        problems: plan.problems.iter().map(Problem::of).collect(),
    })
}

pub(crate) fn server(planned: &Planned) -> PlannedServer<'_> {
    PlannedServer {
        name: &planned.name,
        client: planned.client.as_str(),
        from: &planned.from,
        outcome: match planned.action {
            ImportAction::Added { .. } => "added",
            ImportAction::Exists { .. } => "exists",
            ImportAction::OfProject { .. } => "of_project",
            ImportAction::Unsupported { .. } => "unsupported",
        },
        reason: reason(&planned.action),
        notes: &planned.notes,
        left_out: &planned.left_out,
    }
}

/// Why a server is left out.
fn reason(action: &ImportAction) -> Option<String> {
    match action {
        ImportAction::Added { .. } => None,
        ImportAction::Exists { file } => {
            Some(format!("there is one already in {}", file.display()))
        }
        ImportAction::OfProject { project } => {
            let project = project.display();
            Some(format!("it is only for the project {project}"))
        }
        ImportAction::Unsupported { reason } => Some(reason.clone()),
    }
}

pub(crate) fn servers(count: usize) -> String {
    match count {
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    }
}
