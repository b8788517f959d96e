//! `plexus trust`: approves the servers of a project.

mod approvals;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plexus_mcp_config::{self as config, Locations, SecretSource, ServerEntry};
use serde::Serialize;

use approvals::{Approval, needs_approval, real};
pub(crate) use approvals::{Approvals, NOT_TRUSTED};

use crate::mcp::show::summary;
use crate::output::{as_json, print, printable};
use crate::process_env::{environment, locations};
use crate::{announce, control, data};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Show what this project would start, and approve it after a question:
    plexus trust

  Approve one of its servers, without a question:
    plexus trust --yes git

  List the approvals of all projects:
    plexus trust --list

  Revoke the approvals of a project:
    plexus trust --revoke ~/code/project

A server whose definition changes must be approved again. Running gateways apply the change at once.
The exit code is 0 for success, 1 for failure, and 2 for wrong usage.";

/// Arguments of `plexus trust`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag, and clap refuses those that do not go together"
)]
pub(crate) struct TrustArgs {
    /// A project's folder, or a server of the project in the current folder; by default all servers
    /// of that project.
    #[arg(value_name = "DIR | SERVER")]
    what: Option<String>,

    /// List the approvals, of all projects or of the named one.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    list: bool,

    /// Revoke approvals.
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,

    /// Do not ask.
    ///
    /// Without a terminal, as in a script, nothing is approved without this option.
    #[arg(long, short)]
    yes: bool,

    /// Print one JSON object instead of text. Secrets are masked.
    #[arg(long)]
    json: bool,
}

/// The project and servers that the command line names.
struct TrustTarget {
    project: PathBuf,
    server: Option<String>,
}

/// Runs `plexus trust`: asks about the servers of a project, and stores the answer.
pub(crate) fn run(arguments: &TrustArgs) -> anyhow::Result<ExitCode> {
    let mut approvals = Approvals::read(&data::directory()?)?;
    if arguments.list {
        return list(arguments, &approvals);
    }
    let target = target(arguments.what.as_deref())?;
    if arguments.revoke {
        let is_target = |known: &Approval| {
            known.project == target.project
                && target
                    .server
                    .as_ref()
                    .is_none_or(|name| *name == known.server)
        };
        let revoked = approvals.revoke(is_target);
        approvals.save()?;
        control::reload_all();
        print(&rendered_approvals(
            arguments,
            "no longer allowed",
            "revoked",
            &revoked,
        )?)?;
        return Ok(ExitCode::SUCCESS);
    }
    approve(arguments, &target, approvals)
}

/// Approves a server that its user has just added.
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
            "it must be approved first: plexus trust ({error:#})"
        ));
    }
}

fn approve(
    arguments: &TrustArgs,
    target: &TrustTarget,
    mut approvals: Approvals,
) -> anyhow::Result<ExitCode> {
    let loaded = config::load(&locations_of(&target.project)?, &environment);
    let is_target = |entry: &&ServerEntry| {
        needs_approval(entry)
            && target
                .server
                .as_ref()
                .is_none_or(|name| *name == entry.name)
    };
    let asked: Vec<_> = loaded.servers.iter().filter(is_target).collect();
    for problem in loaded.problems.iter().filter(|_| !arguments.json) {
        announce::problem(problem);
    }
    if asked.is_empty() && !arguments.json {
        let project = printable(&target.project.display().to_string());
        print(&format!("no server of {project} needs approval\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting: Vec<_> = asked
        .iter()
        .copied()
        .filter(|entry| !approvals.admit(&target.project, entry))
        .collect();
    if !arguments.json {
        for entry in &asked {
            let mark = if approvals.admit(&target.project, entry) {
                '='
            } else {
                '+'
            };
            print(&described(mark, entry))?;
        }
    }
    let wanted = waiting.is_empty() || is_wanted(arguments, &target.project)?;
    if wanted && !waiting.is_empty() {
        for entry in &waiting {
            approvals.give(&target.project, entry);
        }
        approvals.save()?;
        control::reload_all();
    }
    if arguments.json {
        print(&as_json(&Outcome {
            project: &target.project,
            written: wanted,
            servers: waiting.iter().map(|entry| entry.name.as_str()).collect(),
        })?)?;
    } else if !wanted {
        print("nothing was approved; use --yes to approve without a question\n")?;
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
    /// Whether they were approved.
    written: bool,
    servers: Vec<&'a str>,
}

fn list(arguments: &TrustArgs, approvals: &Approvals) -> anyhow::Result<ExitCode> {
    let target = arguments.what.as_deref().map(|what| target(Some(what)));
    let target = target.transpose()?;
    let is_target = |known: &&Approval| {
        target.as_ref().is_none_or(|target| {
            known.project == target.project
                && target
                    .server
                    .as_ref()
                    .is_none_or(|name| *name == known.server)
        })
    };
    let given: Vec<_> = approvals.given().filter(is_target).cloned().collect();
    print(&rendered_approvals(
        arguments, "allowed", "approved", &given,
    )?)?;
    Ok(ExitCode::SUCCESS)
}

/// Resolves `what`: a server of the current project, else a project.
fn target(what: Option<&str>) -> anyhow::Result<TrustTarget> {
    let here = locations()?.project_dir;
    let of_project = |folder: &Path, server| TrustTarget {
        project: real(folder),
        server,
    };
    let Some(what) = what else {
        return Ok(of_project(&here, None));
    };
    let loaded = config::load(&locations_of(&here)?, &environment);
    let mut known = loaded.servers.iter().filter(|entry| needs_approval(entry));
    if known.any(|entry| entry.name == what) {
        return Ok(of_project(&here, Some(what.to_owned())));
    }
    if Path::new(what).is_dir() {
        return Ok(of_project(Path::new(what), None));
    }
    bail!(
        "{what:?} is neither a server of {} nor a folder; plexus mcp list shows the \
         servers",
        here.display()
    )
}

fn locations_of(project: &Path) -> anyhow::Result<Locations> {
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

/// The programs that would be started, including those that fetch secrets.
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

fn rendered_approvals(
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
