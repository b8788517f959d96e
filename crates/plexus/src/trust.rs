//! `plexus trust`: which servers that came with a project may be started.

mod approvals;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plexus_hub::config::{self, Locations, SecretSource, ServerEntry};
use serde::Serialize;

use approvals::{Approval, needs_approval, real};
pub(crate) use approvals::{Approvals, NOT_TRUSTED};

use crate::mcp::show::summary;
use crate::output::{as_json, print, printable};
use crate::surroundings::{environment, locations};
use crate::{announce, control, data};

pub(crate) const EXAMPLES: &str = "\
Examples:
  See what this project would start, and allow it after a question:
    plexus trust

  Allow one of its servers, without a question:
    plexus trust --yes git

  What was allowed, in all projects:
    plexus trust --list

  No longer start what came with a project:
    plexus trust --revoke ~/code/project

A server whose definition changes must be allowed anew. Gateways that are running take note at once.
The exit code is 0 if it was done, 1 if not, and 2 for wrong usage.";

/// What to trust.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag, and clap refuses those that do not go together"
)]
pub(crate) struct TrustArgs {
    /// A project's folder, or a server of the project in the current folder; if none is named,
    /// all servers of that project.
    #[arg(value_name = "DIR | SERVER")]
    what: Option<String>,

    /// Show what was allowed, in all projects or in the one that is named.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    list: bool,

    /// Take back what was allowed.
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,

    /// Do not ask.
    ///
    /// Where nobody can be asked, as in a script, nothing is allowed without this.
    #[arg(long, short)]
    yes: bool,

    /// Print one JSON object instead of text. Secrets are masked in it as well.
    #[arg(long)]
    json: bool,
}

/// What the words on the command line name.
struct Meant {
    project: PathBuf,
    server: Option<String>,
}

/// Asks about the servers that came with a project, and notes the answer.
pub(crate) fn run(arguments: &TrustArgs) -> anyhow::Result<ExitCode> {
    let mut approvals = Approvals::read(&data::directory()?)?;
    if arguments.list {
        return list(arguments, &approvals);
    }
    let meant = meant(arguments.what.as_deref())?;
    if arguments.revoke {
        let is_meant = |known: &Approval| {
            known.project == meant.project
                && meant
                    .server
                    .as_ref()
                    .is_none_or(|name| *name == known.server)
        };
        let revoked = approvals.revoke(is_meant);
        approvals.save()?;
        control::reload_all();
        print(&shown(arguments, "no longer allowed", "revoked", &revoked)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    approve(arguments, &meant, approvals)
}

/// Allows a server that its user has just added.
pub(crate) fn allow_added(project: &Path, entry: &ServerEntry) {
    let allow = || {
        let mut approvals = Approvals::read(&data::directory()?)?;
        if !approvals.admit(project, entry) {
            approvals.give(project, entry);
            approvals.save()?;
            control::reload_all();
        }
        anyhow::Ok(())
    };
    if let Err(error) = allow() {
        announce::problem(&format!(
            "it must be allowed first: plexus trust ({error:#})"
        ));
    }
}

fn approve(
    arguments: &TrustArgs,
    meant: &Meant,
    mut approvals: Approvals,
) -> anyhow::Result<ExitCode> {
    let loaded = config::load(&places(&meant.project)?, &environment);
    let is_meant = |entry: &&ServerEntry| {
        needs_approval(entry) && meant.server.as_ref().is_none_or(|name| *name == entry.name)
    };
    let asked: Vec<_> = loaded.servers.iter().filter(is_meant).collect();
    for problem in loaded.problems.iter().filter(|_| !arguments.json) {
        announce::problem(problem);
    }
    if asked.is_empty() && !arguments.json {
        let project = printable(&meant.project.display().to_string());
        print(&format!(
            "nothing came with {project} that needs to be allowed\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting: Vec<_> = asked
        .iter()
        .copied()
        .filter(|entry| !approvals.admit(&meant.project, entry))
        .collect();
    if !arguments.json {
        for entry in &asked {
            let mark = if approvals.admit(&meant.project, entry) {
                '='
            } else {
                '+'
            };
            print(&described(mark, entry))?;
        }
    }
    let wanted = waiting.is_empty() || is_wanted(arguments, &meant.project)?;
    if wanted && !waiting.is_empty() {
        for entry in &waiting {
            approvals.give(&meant.project, entry);
        }
        approvals.save()?;
        control::reload_all();
    }
    if arguments.json {
        print(&as_json(&Outcome {
            project: &meant.project,
            written: wanted,
            servers: waiting.iter().map(|entry| entry.name.as_str()).collect(),
        })?)?;
    } else if !wanted {
        print("nothing was allowed; use --yes to allow it without a question\n")?;
    } else if !waiting.is_empty() {
        print("allowed\n")?;
    }
    Ok(if wanted {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[derive(Serialize)]
struct Outcome<'a> {
    project: &'a Path,
    /// Whether they were allowed.
    written: bool,
    servers: Vec<&'a str>,
}

fn list(arguments: &TrustArgs, approvals: &Approvals) -> anyhow::Result<ExitCode> {
    let meant = arguments.what.as_deref().map(|what| meant(Some(what)));
    let meant = meant.transpose()?;
    let is_meant = |known: &&Approval| {
        meant.as_ref().is_none_or(|meant| {
            known.project == meant.project
                && meant
                    .server
                    .as_ref()
                    .is_none_or(|name| *name == known.server)
        })
    };
    let given: Vec<_> = approvals.given().filter(is_meant).cloned().collect();
    print(&shown(arguments, "allowed", "approved", &given)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What `what` names: a server of the project at hand, else a project.
fn meant(what: Option<&str>) -> anyhow::Result<Meant> {
    let here = locations()?.project_dir;
    let of_project = |folder: &Path, server| Meant {
        project: real(folder),
        server,
    };
    let Some(what) = what else {
        return Ok(of_project(&here, None));
    };
    let loaded = config::load(&places(&here)?, &environment);
    let mut known = loaded.servers.iter().filter(|entry| needs_approval(entry));
    if known.any(|entry| entry.name == what) {
        return Ok(of_project(&here, Some(what.to_owned())));
    }
    if Path::new(what).is_dir() {
        return Ok(of_project(Path::new(what), None));
    }
    bail!(
        "{what:?} is neither a server that came with {} nor a folder; plexus mcp list shows the \
         servers",
        here.display()
    )
}

fn places(project: &Path) -> anyhow::Result<Locations> {
    Ok(Locations {
        project_dir: project.to_owned(),
        ..locations()?
    })
}

fn is_wanted(arguments: &TrustArgs, project: &Path) -> io::Result<bool> {
    if arguments.yes || arguments.json {
        return Ok(arguments.yes);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let mut terminal = io::stderr();
    let project = printable(&project.display().to_string());
    write!(terminal, "may these be started for {project}? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What would be started, secrets' programs included.
fn described(mark: char, entry: &ServerEntry) -> String {
    let line = |text: String| printable(&text) + "\n";
    let mut lines = line(format!("{mark} {}  {}", entry.name, summary(entry)));
    for source in entry.secret_sources() {
        if let SecretSource::Command { command, args } = source {
            let words = args.iter().map(String::as_str);
            let words: Vec<_> = std::iter::once(command.as_str()).chain(words).collect();
            lines += &line(format!("    for a secret: {}", words.join(" ")));
        }
    }
    lines
}

fn shown(
    arguments: &TrustArgs,
    word: &str,
    key: &str,
    approvals: &[Approval],
) -> anyhow::Result<String> {
    if arguments.json {
        return as_json(&std::collections::BTreeMap::from([(key, approvals)]));
    }
    if approvals.is_empty() {
        return Ok(format!("nothing is {word}\n"));
    }
    let line = |known: &Approval| {
        let project = known.project.display();
        printable(&format!("{}  {project}  ({word})", known.server)) + "\n"
    };
    Ok(approvals.iter().map(line).collect())
}
