//! `plexus trust`: approves the servers of a project, and what its settings files allow.

mod approvals;
pub(crate) mod rules;
mod shown;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plexus_mcp_config::{self as config, Locations, ServerEntry};
use serde::Serialize;

use approvals::{Approval, needs_approval, real};
pub(crate) use approvals::{Approvals, NOT_TRUSTED, ProjectApprovals};
use rules::RulesApproval;
use shown::{ShownDefinition, check_length, described};

use crate::output::{self, as_json, print};
use crate::printable::one_line;
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

Everything that decides what runs is shown as it is written: the command and its arguments, the
environment, the working directory, the URL and the headers. Only tokens are shortened, and
characters that cannot be seen are shown as \\u202e.

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

    /// Print one JSON object instead of text, with the definitions as they are written.
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
        let rules = match &target.server {
            Some(_) => Vec::new(),
            None => approvals.revoke_rules(&target.project),
        };
        approvals.save()?;
        control::reload_all();
        print(&rendered_approvals(
            arguments,
            "no longer approved",
            "revoked",
            &revoked,
            &rules,
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
    let policy = &loaded.settings.policy;
    let files = match &target.server {
        Some(_) => Vec::new(),
        None => policy.files_awaiting_approval(),
    };
    if asked.is_empty() && files.is_empty() && !arguments.json {
        let project = one_line(&target.project.display().to_string());
        print(format!("nothing of {project} needs approval\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting: Vec<_> = asked
        .iter()
        .copied()
        .filter(|entry| !approvals.admit(&target.project, entry))
        .collect();
    let rules = files
        .iter()
        .map(|file| RulesApproval::of(&target.project, policy, file));
    let rules: Vec<_> = rules
        .filter(|rules| !approvals.admits_rules(rules))
        .collect();
    let is_waiting = !waiting.is_empty() || !rules.is_empty();
    if !arguments.json {
        for entry in &asked {
            let mark = if approvals.admit(&target.project, entry) {
                '='
            } else {
                '+'
            };
            print(described(mark, entry))?;
        }
        for file in &files {
            let approval = RulesApproval::of(&target.project, policy, file);
            let mark = if rules.contains(&approval) { '+' } else { '=' };
            print(rules::described(mark, policy, file))?;
        }
        print("(+ needs approval, = is approved)\n")?;
    }
    for entry in &waiting {
        check_length(entry)?;
    }
    let definitions = asked
        .iter()
        .map(|entry| ShownDefinition::of(entry, approvals.admit(&target.project, entry)));
    let definitions: Vec<_> = definitions.collect();
    let wanted = !is_waiting || is_wanted(arguments, &target.project)?;
    let shown_rules: Vec<_> = rules.iter().map(|rules| rules.file.clone()).collect();
    if wanted && is_waiting {
        for entry in &waiting {
            approvals.give(&target.project, entry);
        }
        for rules in rules {
            approvals.give_rules(rules);
        }
        approvals.save()?;
        control::reload_all();
    }
    if arguments.json {
        print(&as_json(&Outcome {
            project: &target.project,
            written: wanted,
            servers: waiting.iter().map(|entry| entry.name.as_str()).collect(),
            definitions,
            permissions: &shown_rules,
        })?)?;
    } else if !wanted {
        print("nothing was approved; use --yes to approve without a question\n")?;
    } else if is_waiting {
        print("approved\n")?;
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
    /// The servers that needed approval.
    servers: Vec<&'a str>,
    /// What was approved before, and what needed approval.
    definitions: Vec<ShownDefinition<'a>>,
    /// The settings files whose rules may allow calls from now on.
    permissions: &'a [PathBuf],
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
    let rules = approvals.given_rules().filter(|known| {
        target
            .as_ref()
            .is_none_or(|target| known.project == target.project && target.server.is_none())
    });
    let rules: Vec<_> = rules.cloned().collect();
    print(&rendered_approvals(
        arguments, "approved", "approved", &given, &rules,
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
    // The definitions are on standard output, and must be seen.
    if !output::can_ask() || !output::is_terminal() {
        return Ok(false);
    }
    let project = one_line(&project.display().to_string());
    output::confirm(format!("may these be started for {project}?"))
}

fn rendered_approvals(
    arguments: &TrustArgs,
    word: &str,
    key: &str,
    approvals: &[Approval],
    rules: &[RulesApproval],
) -> anyhow::Result<String> {
    if arguments.json {
        return as_json(&std::collections::BTreeMap::from([
            (key, serde_json::json!(approvals)),
            ("permissions", serde_json::json!(rules)),
        ]));
    }
    if approvals.is_empty() && rules.is_empty() {
        return Ok(format!("nothing is {word}\n"));
    }
    let line = |known: &Approval| {
        let project = known.project.display();
        one_line(&format!("{}  {project}  ({word})", known.server)) + "\n"
    };
    let rules_line = |known: &RulesApproval| {
        let file = known.file.display();
        one_line(&format!("permissions  {file}  ({word})")) + "\n"
    };
    let servers = approvals.iter().map(line);
    Ok(servers.chain(rules.iter().map(rules_line)).collect())
}
