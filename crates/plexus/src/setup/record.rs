//! The record of what setup has changed, with which it can be undone. It holds secrets, since it holds
//! the texts of files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_mcp_config::Locations;
use plexus_mcp_config::clients::{Client, Edit};
use plexus_mcp_config::edit::{self, Change};
use plexus_mcp_core::Raw;
use serde::{Deserialize, Serialize};

/// All changes, in order.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(skip)]
    file: PathBuf,
    pub(super) changes: Vec<Changed>,
}

/// A changed file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub(super) enum Changed {
    /// The file with Plexus's own servers.
    Plexus {
        /// The names of the servers that were added.
        added: Vec<String>,
        change: Change,
    },
    /// A file of an agent.
    Agent(AgentChange),
}

/// A changed file of an agent.
#[derive(Serialize, Deserialize)]
pub(super) struct AgentChange {
    /// The name of the agent.
    client: String,
    pub(super) file: PathBuf,
    /// The text before; `None` if the file did not exist.
    pub(super) before: Option<String>,
    /// The text that setup wrote.
    pub(super) after: String,
    pub(super) edits: Vec<Edit>,
}

impl AgentChange {
    pub(super) fn new(client: Client, file: &Path, before: Option<String>) -> Self {
        Self {
            client: client.as_str().to_owned(),
            file: file.to_owned(),
            before,
            after: String::new(),
            edits: Vec::new(),
        }
    }

    /// The agent.
    pub(super) fn client(&self) -> Option<Client> {
        let mut clients = Client::ALL.into_iter();
        clients.find(|client| client.as_str() == self.client)
    }
}

impl Record {
    /// Reads the record; an empty one if there is none. It is locked against other processes until
    /// the lock is dropped.
    pub(super) fn open(locations: &Locations) -> anyhow::Result<(Self, Option<File>)> {
        let directory = locations.config_dir.as_ref();
        let directory = directory.context("there is no home directory; set HOME")?;
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        // The lock is a file of its own: the directory is locked by each change of the servers in it. On
        // file systems without locks, the last writer wins.
        let lock = File::create(directory.join("setup.lock")).and_then(|lock| {
            lock.lock()?;
            Ok(lock)
        });
        let file = directory.join("setup.json");
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.with_context(|| format!("cannot read {}", file.display()))?),
        };
        let mut record = match text {
            None => Self::default(),
            Some(text) => serde_json::from_str(&text).with_context(|| {
                format!(
                    "{} is damaged, and setup cannot be undone with it; move it away",
                    file.display()
                )
            })?,
        };
        record.file = file;
        Ok((record, lock.ok()))
    }

    /// Writes the record; without changes, it is removed.
    pub(super) fn save(&self) -> anyhow::Result<()> {
        let file = &self.file;
        let saved = if self.changes.is_empty() {
            match fs::remove_file(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            }
        } else {
            let text = Raw::encode(self).context("cannot write the record")?;
            edit::write(file, text.as_str())
        };
        saved.with_context(|| format!("cannot write {}", file.display()))
    }
}
