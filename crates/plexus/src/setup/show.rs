//! A setup, as text and JSON, without secrets.

use std::path::{Path, PathBuf};

use plexus_mcp_config::clients::PLEXUS;
use serde::Serialize;

use super::agents::{Agent, Registration};
use super::apply::Applied;
use super::undo::{UndoOutcome, Undone};
use crate::doctor::Diagnosis;
use crate::import::plan::Plan;
use crate::import::show::{self, PlannedServer, servers};
use crate::mcp::show::Problem;
use crate::output::as_json;
use crate::printable::one_line;

#[derive(Serialize)]
struct Setup<'a> {
    /// Whether files were changed.
    written: bool,
    /// The command with which agents start Plexus.
    command: &'a [String],
    /// The file with Plexus's own servers.
    file: &'a Path,
    servers: Vec<PlannedServer<'a>>,
    agents: Vec<ShownAgent<'a>>,
    problems: Vec<Problem<'a>>,
    /// The files that were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<&'a PathBuf>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failures: &'a [String],
    /// The report of doctor.
    #[serde(skip_serializing_if = "Option::is_none")]
    doctor: Option<&'a Diagnosis>,
}

#[derive(Serialize)]
struct ShownAgent<'a> {
    client: &'static str,
    file: &'a Path,
    /// How Plexus is added: `present` if it is there already, `command` or `file`.
    registration: &'static str,
    /// The servers that are turned off.
    turned_off: Vec<&'a str>,
    /// The servers that stay on.
    stays_on: Vec<StaysOn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct StaysOn<'a> {
    name: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct UndoneFiles<'a> {
    undone: &'a [Undone],
}

/// The servers that are copied, and the changes at each agent.
pub(super) fn plan(plan: &Plan, agents: &[Agent], command: &[String]) -> String {
    let mut shown = String::new();
    let mut line = |text: String| shown.extend([one_line(&text).as_str(), "\n"]);
    if plan.additions().next().is_some() {
        line(format!("Plexus: {}", plan.file.display()));
    }
    let mut shown = shown + &show::diff(plan);
    for agent in agents {
        let mut line = |text: String| shown.extend([one_line(&text).as_str(), "\n"]);
        line(format!(
            "{}: {}",
            agent.client.format().title,
            agent.file.display()
        ));
        if let Some(problem) = &agent.problem {
            line(format!("! left out: {problem}"));
            continue;
        }
        let started = command.join(" ");
        match &agent.registration {
            Registration::Present => line(format!("= {PLEXUS}  it is there already")),
            Registration::Command(program, add) => {
                let arguments = add.arguments(PLEXUS, command).join(" ");
                line(format!("+ {PLEXUS}  by: {} {arguments}", program.name));
            }
            Registration::File => line(format!("+ {PLEXUS}  {started}")),
        }
        for original in &agent.originals {
            line(format!("- {}  Plexus has it", original.name));
        }
        for (name, reason) in &agent.kept {
            line(format!("! {name}  stays on: {reason}"));
        }
    }
    shown
}

/// The result.
pub(super) fn end(agents: &[Agent], has_work: bool, applied: Option<&Applied>) -> String {
    let Some(applied) = applied else {
        return match (agents.is_empty(), has_work) {
            (true, _) => "no agent was found on this machine\n".to_owned(),
            (false, false) => "there is nothing to do\n".to_owned(),
            (false, true) => {
                "nothing was written; with --yes, all of this would be done\n".to_owned()
            }
        };
    };
    let mut shown = String::new();
    let mut line = |text: String| shown.extend([one_line(&text).as_str(), "\n"]);
    for (client, file) in &applied.files {
        let title = client.map_or("Plexus", |client| client.format().title);
        line(format!("changed: {title}, {}", file.display()));
    }
    for note in &applied.notes {
        line(format!("note: {note}"));
    }
    for failure in &applied.failures {
        line(format!("failed: {failure}"));
    }
    if !applied.files.is_empty() {
        line("restart the agents that run; to undo all of this: plexus setup --undo".to_owned());
    }
    shown
}

/// The whole plan and its result, as JSON.
pub(super) fn json(
    plan: &Plan,
    agents: &[Agent],
    command: &[String],
    applied: Option<&Applied>,
    doctor: Option<&Diagnosis>,
) -> anyhow::Result<String> {
    let changed = applied.map(|applied| applied.files.iter().map(|(_, file)| file).collect());
    as_json(&Setup {
        written: applied.is_some_and(|applied| !applied.files.is_empty()),
        command,
        file: &plan.file,
        servers: plan.servers.iter().map(show::server).collect(),
        agents: agents.iter().map(agent).collect(),
        problems: plan.problems.iter().map(Problem::of).collect(),
        changed: changed.unwrap_or_default(),
        notes: applied.map_or(&[], |applied| &applied.notes),
        failures: applied.map_or(&[], |applied| &applied.failures),
        doctor,
    })
}

fn agent(agent: &Agent) -> ShownAgent<'_> {
    let originals = agent.originals.iter();
    let kept = agent.kept.iter();
    ShownAgent {
        client: agent.client.as_str(),
        file: &agent.file,
        registration: match agent.registration {
            Registration::Present => "present",
            Registration::Command(..) => "command",
            Registration::File => "file",
        },
        turned_off: originals.map(|original| original.name.as_str()).collect(),
        stays_on: kept
            .map(|(name, reason)| StaysOn { name, reason })
            .collect(),
        problem: agent.problem.as_ref().map(ToString::to_string),
    }
}

/// The result of `--undo`. With `stays`, the servers are still in Plexus's own file.
pub(super) fn undone(undone: &[Undone], stays: bool, json: bool) -> anyhow::Result<String> {
    if json {
        return as_json(&UndoneFiles { undone });
    }
    let mut shown = String::new();
    let mut line = |text: String| shown.extend([one_line(&text).as_str(), "\n"]);
    for Undone { file, outcome, .. } in undone {
        let file = file.display();
        match outcome {
            UndoOutcome::Restored => line(format!("restored: {file}")),
            UndoOutcome::Missing => line(format!("it is not there any more: {file}")),
            UndoOutcome::Failed { error } => line(format!("failed: {file}: {error}")),
            UndoOutcome::TakenBack {
                servers: back,
                kept,
                changed_since,
                removed,
            } => {
                let count = servers(back.len());
                line(format!("{file} has changed since; {count} taken back:"));
                for name in back {
                    line(format!("  as before: {name}"));
                }
                for name in kept {
                    line(format!("  changed since, and kept: {name}"));
                }
                for key in changed_since {
                    line(format!("  changed since, and kept: the key {key}"));
                }
                for key in removed {
                    line(format!("  changed since, and removed: the key {key}"));
                }
            }
        }
    }
    if stays {
        line("the servers stay in Plexus; to undo everything: plexus setup --undo".to_owned());
    }
    Ok(shown)
}
