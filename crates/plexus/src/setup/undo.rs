//! `plexus setup --undo`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use plexus_mcp_config::Locations;
use plexus_mcp_config::clients::{Client, ClientFile, TakenBack};
use plexus_mcp_config::edit::{self, Change, Document, EditError};
use plexus_mcp_core::Raw;
use serde::Serialize;

use super::record::{AgentChange, Changed, Record};
use super::show;
use crate::output::print;

/// The outcome for a file.
#[derive(Serialize)]
pub(super) struct Undone {
    /// The name of the agent; `None` for the file of Plexus.
    pub(super) client: Option<&'static str>,
    pub(super) file: std::path::PathBuf,
    #[serde(flatten)]
    pub(super) outcome: UndoOutcome,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum UndoOutcome {
    /// It is as it was, to the byte.
    Restored,
    /// The file has changed since: only the entries of setup were taken back.
    TakenBack {
        /// The servers that are as they were.
        servers: Vec<String>,
        /// The servers that were changed since, and are kept.
        kept: Vec<String>,
        /// The keys that were changed since, and are kept.
        changed_since: Vec<String>,
        /// The keys that were changed since in what setup had added, and are gone with it.
        removed: Vec<String>,
    },
    /// The file is gone.
    Missing,
    /// It could not be undone, and is as it was.
    Failed {
        /// Why.
        error: String,
    },
}

/// Undoes all changes, or those at the agents that are named.
pub(super) fn run(
    locations: &Locations,
    clients: &[Client],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (mut record, _lock) = Record::open(locations)?;
    let is_chosen = |changed: &Changed| match changed {
        Changed::Plexus { .. } => clients.is_empty(),
        Changed::Agent(change) => {
            clients.is_empty()
                || change
                    .client()
                    .is_some_and(|client| clients.contains(&client))
        }
    };
    if !record.changes.iter().any(is_chosen) {
        return Err(if clients.is_empty() {
            anyhow!("there is no setup to undo")
        } else {
            let names: Vec<_> = clients.iter().map(|client| client.as_str()).collect();
            anyhow!("setup has changed nothing at {}", names.join(", "))
        });
    }
    let mut undone = Vec::new();
    // The last change first: a file may have been changed several times.
    let mut index = record.changes.len();
    while let Some(at) = index.checked_sub(1) {
        index = at;
        let Some(changed) = record.changes.get(at).filter(|changed| is_chosen(changed)) else {
            continue;
        };
        let (client, file) = match changed {
            Changed::Plexus { change, .. } => (None, change.file.clone()),
            Changed::Agent(change) => (change.client().map(Client::as_str), change.file.clone()),
        };
        let outcome = match changed {
            Changed::Plexus { added, change } => undo_own(added, change),
            Changed::Agent(change) => undo_agent(change),
        };
        let outcome = match outcome {
            Ok(outcome) => {
                record.changes.remove(at);
                record.save()?;
                outcome
            }
            Err(error) => UndoOutcome::Failed {
                error: format!("{error:#}"),
            },
        };
        undone.push(Undone {
            client,
            file,
            outcome,
        });
    }
    let stays = record
        .changes
        .iter()
        .any(|changed| matches!(changed, Changed::Plexus { .. }));
    print(&show::undone(&undone, stays && !clients.is_empty(), json)?)?;
    let has_failed = |undone: &Undone| matches!(undone.outcome, UndoOutcome::Failed { .. });
    Ok(if undone.iter().any(has_failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn undo_agent(change: &AgentChange) -> anyhow::Result<UndoOutcome> {
    let client = change
        .client()
        .context("this version does not know this agent; use the version that set it up")?;
    let file = &change.file;
    let (mut edited, now) = ClientFile::open(client, file)?;
    let now = match now {
        None => return Ok(UndoOutcome::Missing),
        Some(now) if now == change.after => {
            restore(file, change.before.as_deref())?;
            return Ok(UndoOutcome::Restored);
        }
        // A command that was interrupted before it wrote.
        Some(now) if Some(&now) == change.before.as_ref() => return Ok(UndoOutcome::Restored),
        Some(now) => now,
    };
    let changed_since = edited.changed_keys(&change.after).unwrap_or_default();
    let (mut servers, mut kept) = (Vec::new(), Vec::new());
    for edit in change.edits.iter().rev() {
        let name = edit.name().to_owned();
        let list = match edited.take_back(edit)? {
            TakenBack::Done => &mut servers,
            TakenBack::Changed => &mut kept,
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    let undone = edited.changed_keys(&now).unwrap_or_default();
    let is_within = |key: &String, other: &String| {
        let rest = key.strip_prefix(other.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let (removed, changed_since) = changed_since
        .into_iter()
        .partition(|key| undone.iter().any(|other| is_within(key, other)));
    edit::write(file, &edited.written())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(UndoOutcome::TakenBack {
        servers,
        kept,
        changed_since,
        removed,
    })
}

/// Undoes the change of Plexus's own file.
fn undo_own(added: &[String], change: &Change) -> anyhow::Result<UndoOutcome> {
    if !change.file.exists() {
        return Ok(UndoOutcome::Missing);
    }
    match edit::undo(change) {
        Ok(()) => return Ok(UndoOutcome::Restored),
        Err(EditError::Changed { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let (mut servers, mut kept) = (Vec::new(), Vec::new());
    let written = written(&change.after)?;
    edit::change(&change.file, |document| {
        for name in added {
            let definition = find(document, name);
            let is_unchanged = definition.is_some()
                && definition
                    .as_ref()
                    .map(|raw| raw.decode::<serde_json::Value>().ok())
                    == written.get(name).map(|definition| Some(definition.clone()));
            if is_unchanged {
                document.remove(name)?;
                servers.push(name.clone());
            } else {
                kept.push(name.clone());
            }
        }
        Ok(())
    })?;
    Ok(UndoOutcome::TakenBack {
        servers,
        kept,
        changed_since: Vec::new(),
        removed: Vec::new(),
    })
}

fn find(document: &Document, name: &str) -> Option<Raw> {
    let mut servers = document.servers();
    let (_, definition) = servers.find(|(other, _)| *other == name)?;
    Some(definition.clone())
}

/// The servers that setup wrote.
fn written(text: &str) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let root: serde_json::Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .context("the record is damaged")?;
    let servers = root
        .get("mcpServers")
        .and_then(serde_json::Value::as_object);
    Ok(servers.cloned().unwrap_or_default())
}

fn restore(file: &Path, before: Option<&str>) -> anyhow::Result<()> {
    let restored = match before {
        Some(before) => edit::write(file, before),
        None => match fs::remove_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
    };
    restored.with_context(|| format!("cannot write {}", file.display()))
}
