//! `plexus setup`: puts Plexus in front of the servers of the agents on this machine.

mod agents;
mod apply;
mod command;
mod record;
mod show;
mod undo;

use std::process::ExitCode;

use clap::Args;
use plexus_mcp_config::clients::Client;

use agents::{Agent, find};
use apply::Applied;

use crate::announce;
use crate::doctor;
use crate::import::plan::Plan;
use crate::import::secrets::{SecretPlace, move_secrets};
use crate::import::{client_names, not_found};
use crate::output::{self, print};
use crate::printable::Printable;
use crate::process_env::{environment, locations};
use crate::runtime::on_runtime;
use crate::session::ConfigArgs;
use crate::terminal::Canvas;

pub(crate) const EXAMPLES: &str = "\
Examples:
  Show the agents, their servers and the changes, and make them after a question:
    plexus setup

  Only show them:
    plexus setup --dry-run

  Without a question, for two agents:
    plexus setup --client claude-code --client codex --yes

  Undo it, for all agents or for one:
    plexus setup --undo
    plexus setup --undo --client codex

An agent whose file cannot be edited without changing the rest of it is left out, and named. A server
that does not work through Plexus yet, because a variable is not set, stays on in its agent.

Undoing restores a file to the byte if it has not changed since. Otherwise it takes back the changes
of setup alone, and shows the keys of the others.

The exit code is 0 if there is nothing left to do, and with --dry-run, whatever doctor finds; 1 for
failure, also if you do not agree, there is no terminal to ask at, or an agent was left out; and 2 for
wrong usage.";

/// Arguments of `plexus setup`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag, and clap refuses those that do not go together"
)]
pub(crate) struct SetupArgs {
    /// Only this agent; by default all agents that are found. This option may be repeated.
    #[arg(long, value_name = "NAME", value_parser = client_names())]
    client: Vec<Client>,

    /// Only show what would be done.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask.
    ///
    /// Without a terminal, as in a script, nothing is written without this option, and the command
    /// fails if there is something to do.
    #[arg(long, short)]
    yes: bool,

    /// Undo what setup has done.
    #[arg(long, conflicts_with_all = ["dry_run", "yes", "offline"])]
    undo: bool,

    /// Move secrets in plain text there; by default you are asked.
    ///
    /// Without a terminal they stay in the file, and a note names each.
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with = "undo")]
    secrets: Option<SecretPlace>,

    /// Start no server for the check afterwards, as `plexus doctor --offline`.
    #[arg(long)]
    offline: bool,

    /// Print one JSON object instead of text. Secrets are masked.
    #[arg(long)]
    json: bool,
}

/// Runs `plexus setup`.
pub(crate) fn run(arguments: &SetupArgs) -> anyhow::Result<ExitCode> {
    let locations = locations()?;
    if arguments.undo {
        return undo::run(&locations, &arguments.client, arguments.json);
    }
    let agents = find(&locations, &arguments.client);
    if let Some(missing) = missing(&arguments.client, &agents) {
        return Err(not_found(missing, &locations));
    }
    let mut plan = Plan::make(&locations, &agents, &environment)?;
    let may_ask = !(arguments.yes || arguments.dry_run || arguments.json);
    let moves = move_secrets(&mut plan, arguments.secrets, may_ask)?;
    let command = command::registered()?;
    let agents: Vec<_> = agents
        .into_iter()
        .map(|client| Agent::plan(client, &plan, &locations, &command))
        .collect::<Result<_, _>>()?;
    let has_work = plan.additions().next().is_some() || agents.iter().any(Agent::has_work);
    if !arguments.json {
        for problem in &plan.problems {
            announce::problem(problem);
        }
        print(show::plan(&plan, &agents, &command))?;
    }
    let agreed = has_work && is_wanted(arguments)?;
    let applied = if agreed {
        on_runtime(async {
            moves.store().await?;
            apply::apply(&plan, &agents, &command, &locations).await
        })?
    } else {
        Applied::default()
    };
    let diagnosis = if agreed {
        match doctor::diagnose(&ConfigArgs::default(), arguments.offline)? {
            Ok(diagnosis) => Some(diagnosis),
            Err(interrupted) => return Ok(interrupted),
        }
    } else {
        None
    };
    let is_complete = applied.failures.is_empty() && agents.iter().all(Agent::is_editable);
    print(if arguments.json {
        let applied = agreed.then_some(&applied);
        show::json(&plan, &agents, &command, applied, diagnosis.as_ref())?.into()
    } else {
        let mut text = Printable::from(show::end(&agents, has_work, agreed.then_some(&applied)));
        if let Some(diagnosis) = diagnosis {
            text = text + diagnosis.text(Canvas::output());
        }
        text
    })?;
    let is_done = agreed || !has_work || arguments.dry_run;
    Ok(if is_done && is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The first agent that was named and is not on this machine.
fn missing(named: &[Client], found: &[Client]) -> Option<Client> {
    named.iter().copied().find(|client| !found.contains(client))
}

fn is_wanted(arguments: &SetupArgs) -> anyhow::Result<bool> {
    if arguments.yes || arguments.dry_run || arguments.json {
        return Ok(arguments.yes);
    }
    Ok(output::can_ask() && output::confirm("do this?")?)
}
