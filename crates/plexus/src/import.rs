//! `plexus import`: copies servers from the configuration of other clients.

mod plan;
mod show;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plexus_mcp_config::Locations;
use plexus_mcp_config::edit::{self, Change, EditError};
use plexus_mcp_config::import::Client;
use plexus_mcp_core::Raw;
use serde::{Deserialize, Serialize};

use plan::Plan;

use crate::announce;
use crate::output::{as_json, print, printable};
use crate::process_env::{environment, locations};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Show the servers found, and add them after a question:
    plexus import

  What would be copied from Cursor?
    plexus import cursor --dry-run

  Without a question, for a script:
    plexus import claude-desktop --yes --json

  Undo the last import:
    plexus import --undo

The files of the other clients are only read. Servers that they have for one project alone are
shown, but not added for all. The exit code is 0 for success, 1 for failure, and 2 for wrong usage.";

/// Arguments of `plexus import`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag, and clap refuses those that do not go together"
)]
pub(crate) struct ImportArgs {
    /// The client whose servers to add; all clients by default.
    #[arg(value_parser = client_names())]
    client: Option<Client>,

    /// Only show what would be added.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask.
    ///
    /// Without a terminal, as in a script, nothing is written without this option.
    #[arg(long, short)]
    yes: bool,

    /// Restore the file as it was before the last import.
    ///
    /// This is refused if the file has changed since.
    #[arg(long, conflicts_with_all = ["client", "dry_run", "yes"])]
    undo: bool,

    /// Print one JSON object instead of text. Secrets are masked.
    #[arg(long)]
    json: bool,
}

/// The record of an import, with which it can be undone.
#[derive(Serialize, Deserialize)]
struct Backup {
    added: Vec<String>,
    change: Change,
}

/// Runs `plexus import`.
pub(crate) fn run(arguments: &ImportArgs) -> anyhow::Result<ExitCode> {
    let locations = locations()?;
    if arguments.undo {
        undo(&locations, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let clients = match &arguments.client {
        Some(client) => std::slice::from_ref(client),
        None => &Client::ALL,
    };
    let plan = Plan::make(&locations, clients, &environment)?;
    if !arguments.json {
        for problem in &plan.problems {
            announce::problem(problem);
        }
        print(&show::diff(&plan))?;
    }
    let is_written = plan.additions().next().is_some() && is_wanted(arguments, &plan)?;
    if is_written {
        write(&plan, &locations)?;
    }
    print(&if arguments.json {
        show::json(&plan, is_written)?
    } else {
        show::end(&plan, is_written)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn is_wanted(arguments: &ImportArgs, plan: &Plan) -> io::Result<bool> {
    if arguments.yes || arguments.dry_run || arguments.json {
        return Ok(arguments.yes);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let mut terminal = io::stderr();
    write!(terminal, "add to {}? [y/N] ", plan.file.display())?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Adds the servers. The record for undoing it is written first.
fn write(plan: &Plan, locations: &Locations) -> anyhow::Result<()> {
    let backup_file = backup_file(locations)?;
    edit::change(&plan.file, |document| {
        for addition in plan.additions() {
            document.add(&addition.name, &addition.definition)?;
        }
        let added = plan.additions().map(|addition| addition.name.clone());
        let backup = Backup {
            added: added.collect(),
            change: document.change(),
        };
        Raw::encode(&backup)
            .map_err(io::Error::from)
            .and_then(|backup| edit::write(&backup_file, backup.as_str()))
            .map_err(|source| EditError::Write {
                file: backup_file.clone(),
                source,
            })
    })?;
    Ok(())
}

fn undo(locations: &Locations, json: bool) -> anyhow::Result<()> {
    let backup_file = backup_file(locations)?;
    let text = match std::fs::read_to_string(&backup_file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(anyhow!("there is no import to undo"));
        }
        read => read.with_context(|| format!("cannot read {}", backup_file.display()))?,
    };
    let backup: Backup = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; remove it", backup_file.display()))?;
    edit::undo(&backup.change).map_err(|error| match error {
        EditError::Changed { .. } => anyhow!(
            "{error}; remove what is not wanted, one by one: plexus mcp remove NAME --scope user \
             (the import added {})",
            printable(&backup.added.join(", "))
        ),
        other => other.into(),
    })?;
    std::fs::remove_file(&backup_file)
        .with_context(|| format!("cannot remove {}", backup_file.display()))?;
    let file = &backup.change.file;
    let said = if json {
        as_json(&show::Undone {
            file,
            removed: &backup.added,
        })?
    } else {
        show::undone(file, &backup.added)
    };
    Ok(print(&said)?)
}

fn backup_file(locations: &Locations) -> anyhow::Result<PathBuf> {
    let directory = locations.config_dir.as_ref();
    let directory = directory.context("there is no home directory; set HOME")?;
    Ok(directory.join("last-import.json"))
}

/// Parses the name of a client, and lists the names.
fn client_names() -> impl TypedValueParser<Value = Client> {
    let names = Client::ALL.map(Client::as_str);
    PossibleValuesParser::new(names).try_map(|name| {
        let client = Client::ALL
            .into_iter()
            .find(|client| client.as_str() == name);
        client.ok_or("there is no such client")
    })
}
