//! Makes the planned changes. The record of each is written before it.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use plexus_mcp_config::Locations;
use plexus_mcp_config::clients::{Client, ClientFile};
use plexus_mcp_config::edit::{self, EditError};

use super::agents::{Agent, Registration};
use super::command;
use super::record::{AgentChange, Changed, Record};
use crate::import::plan::Plan;

/// How often a file is edited anew, if an agent writes it at the same time.
const MAX_ATTEMPTS: usize = 3;

/// What was done.
#[derive(Default)]
pub(super) struct Applied {
    /// The agents and the files that were changed.
    pub(super) files: Vec<(Option<Client>, PathBuf)>,
    /// What is worth knowing.
    pub(super) notes: Vec<String>,
    /// What could not be done.
    pub(super) failures: Vec<String>,
}

/// Makes all changes. A failure at one agent leaves the others alone.
///
/// # Errors
/// The record cannot be written, or Plexus's own servers cannot be. Nothing was changed at an agent.
pub(super) async fn apply(
    plan: &Plan,
    agents: &[Agent],
    command: &[String],
    locations: &Locations,
) -> anyhow::Result<Applied> {
    let (mut record, _lock) = Record::open(locations)?;
    let mut applied = Applied::default();
    if plan.additions().next().is_some() {
        take_over(plan, &mut record)?;
        applied.files.push((None, plan.file.clone()));
    }
    for agent in agents.iter().filter(|agent| agent.has_work()) {
        for file in agent.files() {
            let mut work = Work {
                agent,
                command,
                home: locations.home.as_ref(),
                record: &mut record,
                notes: &mut applied.notes,
            };
            match work.change(&file).await {
                Ok(true) => applied.files.push((Some(agent.client), file)),
                Ok(false) => {}
                Err(error) => {
                    let title = agent.client.format().title;
                    applied.failures.push(format!("{title}: {error:#}"));
                }
            }
        }
    }
    Ok(applied)
}

/// Adds the servers to Plexus's own file.
fn take_over(plan: &Plan, record: &mut Record) -> anyhow::Result<()> {
    edit::change(&plan.file, |document| {
        for addition in plan.additions() {
            document.add(&addition.name, &addition.definition)?;
        }
        let added = plan.additions().map(|addition| addition.name.clone());
        record.changes.push(Changed::Plexus {
            added: added.collect(),
            change: document.change(),
        });
        record.save().map_err(|error| EditError::Write {
            file: plan.file.clone(),
            source: io::Error::other(error),
        })
    })?;
    Ok(())
}

/// The work on the files of one agent.
struct Work<'a> {
    agent: &'a Agent,
    command: &'a [String],
    home: Option<&'a PathBuf>,
    record: &'a mut Record,
    notes: &'a mut Vec<String>,
}

impl Work<'_> {
    /// Edits a file; returns whether it was changed.
    async fn change(&mut self, file: &Path) -> anyhow::Result<bool> {
        let client = self.agent.client;
        let (edited, before) = self.edited(file)?;
        if edited.edits().is_empty() {
            return Ok(false);
        }
        let kept = self.record.changes.len();
        self.record
            .changes
            .push(Changed::Agent(AgentChange::new(client, file, before)));
        self.note(&edited)?;
        let is_registered_here = *file == self.agent.file;
        if let Registration::Command(program, add) = &self.agent.registration
            && is_registered_here
        {
            let added = command::add(program, add, self.home, self.command).await;
            let (after, text) = ClientFile::open(client, file)?;
            if let Err(error) = added {
                self.notes.push(format!(
                    "`{} mcp add` failed, so that its file was edited: {error:#}",
                    program.name
                ));
            } else if !after.has_plexus() {
                self.notes.push(format!(
                    "`{} mcp add` wrote another file than {}, which was edited as well",
                    program.name,
                    file.display()
                ));
            } else if add.loses_text {
                // Its other changes of the file are taken back, too.
                let text = text.unwrap_or_default();
                let is_replaced = replace(file, Some(&text), &edited.written())?;
                if is_replaced {
                    return Ok(true);
                }
            }
        }
        let written = self.write(file);
        if written.is_err() && self.is_unchanged(file) {
            self.record.changes.truncate(kept);
            self.record.save()?;
        }
        written.map(|()| true)
    }

    /// Writes the edits to the file as it is now.
    fn write(&mut self, file: &Path) -> anyhow::Result<()> {
        for _attempt in 0..MAX_ATTEMPTS {
            let (edited, before) = self.edited(file)?;
            self.note(&edited)?;
            if replace(file, before.as_deref(), &edited.written())? {
                return Ok(());
            }
        }
        Err(anyhow!(
            "{} is changed all the time; close the program that writes it",
            file.display()
        ))
    }

    /// The file as it is now, with the edits, and its text without them.
    fn edited(&self, file: &Path) -> anyhow::Result<(ClientFile, Option<String>)> {
        let (mut edited, before) = ClientFile::open(self.agent.client, file)?;
        // One of them may have the name of Plexus.
        for name in self.agent.originals_in(file) {
            edited.disable(name)?;
        }
        let is_present = matches!(self.agent.registration, Registration::Present);
        if *file == self.agent.file && !is_present {
            edited.register(self.command)?;
        }
        Ok((edited, before))
    }

    /// Records what is about to be written. The command of an agent may have made an edit already.
    fn note(&mut self, edited: &ClientFile) -> anyhow::Result<()> {
        if let Some(Changed::Agent(change)) = self.record.changes.last_mut() {
            change.after = edited.written();
            for edit in edited.edits() {
                if !change.edits.contains(edit) {
                    change.edits.push(edit.clone());
                }
            }
        }
        self.record.save()
    }

    /// Whether the file has the text that it had before.
    fn is_unchanged(&self, file: &Path) -> bool {
        let Some(Changed::Agent(change)) = self.record.changes.last() else {
            return false;
        };
        let now = ClientFile::open(self.agent.client, file);
        now.is_ok_and(|(_, now)| now == change.before)
    }
}

/// Replaces the text of a file, if it still is `before`; returns whether it was.
fn replace(file: &Path, before: Option<&str>, after: &str) -> anyhow::Result<bool> {
    let now = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read.with_context(|| format!("cannot read {}", file.display()))?),
    };
    if now.as_deref() != before {
        return Ok(false);
    }
    edit::write(file, after).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(true)
}
