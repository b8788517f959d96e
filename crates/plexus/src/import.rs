//! `plexus import`: copies servers from the configuration of other clients.

pub(crate) mod plan;
pub(crate) mod secrets;
pub(crate) mod show;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plexus_mcp_config::Locations;
use plexus_mcp_config::clients::Client;
use plexus_mcp_config::edit::{self, Change, EditError};
use plexus_mcp_core::Raw;
use serde::{Deserialize, Serialize};

use plan::Plan;
use secrets::{KeyringMoves, SecretPlace, move_secrets};

use crate::announce;
use crate::output::{self, as_json, print};
use crate::printable::one_line;
use crate::process_env::{environment, locations};
use crate::runtime::on_runtime;

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
shown, but not added for all. Keys that mean nothing to Plexus are listed.

The exit code is 0 if there is nothing left to add, and with --dry-run; 1 for failure, also if you do
not agree or there is no terminal to ask at; and 2 for wrong usage.";

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
    /// Without a terminal, as in a script, nothing is written without this option, and the command
    /// fails if there is something to add.
    #[arg(long, short)]
    yes: bool,

    /// Restore the file as it was before the last import.
    ///
    /// This is refused if the file has changed since.
    #[arg(long, conflicts_with_all = ["client", "dry_run", "yes"])]
    undo: bool,

    /// Move secrets in plain text there; by default you are asked.
    ///
    /// Without a terminal they stay in the file, and a note names each.
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with = "undo")]
    secrets: Option<SecretPlace>,

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
    let mut plan = Plan::make(&locations, clients, &environment)?;
    if let ([client], []) = (clients, plan.found.as_slice()) {
        return Err(not_found(*client, &locations));
    }
    let may_ask = !(arguments.yes || arguments.dry_run || arguments.json);
    let moves = move_secrets(&mut plan, arguments.secrets, may_ask)?;
    if !arguments.json {
        for problem in &plan.problems {
            announce::problem(problem);
        }
        print(show::diff(&plan))?;
    }
    let has_additions = plan.additions().next().is_some();
    let is_written = has_additions && is_wanted(arguments, &plan)?;
    if is_written {
        store(&moves)?;
        write(&plan, &locations)?;
    }
    print(&if arguments.json {
        show::json(&plan, is_written)?
    } else {
        show::end(&plan, is_written)
    })?;
    Ok(if is_written || !has_additions || arguments.dry_run {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn is_wanted(arguments: &ImportArgs, plan: &Plan) -> io::Result<bool> {
    if arguments.yes || arguments.dry_run || arguments.json {
        return Ok(arguments.yes);
    }
    if !output::can_ask() {
        return Ok(false);
    }
    output::confirm(format!("add to {}?", plan.file.display()))
}

/// The error for a client that has no file.
pub(crate) fn not_found(client: Client, locations: &Locations) -> anyhow::Error {
    let files = client.user_files(locations).into_iter();
    let files = files.chain(client.project_files(locations));
    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
    let files = files.join(" and ");
    anyhow!(
        "{} is not configured here; looked for {files}",
        client.as_str()
    )
}

/// Stores secrets in the keyring.
fn store(moves: &KeyringMoves) -> anyhow::Result<()> {
    if moves.is_empty() {
        return Ok(());
    }
    on_runtime(moves.store())
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
            one_line(&backup.added.join(", "))
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
pub(crate) fn client_names() -> impl TypedValueParser<Value = Client> {
    let names = Client::ALL.map(Client::as_str);
    PossibleValuesParser::new(names).try_map(|name| {
        let client = Client::ALL
            .into_iter()
            .find(|client| client.as_str() == name);
        client.ok_or("there is no such client")
    })
}
