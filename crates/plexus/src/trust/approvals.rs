//! Which servers of which projects may be started.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use plexus_hub::config::{Scope, ServerEntry, edit};
use serde::{Deserialize, Serialize};

/// What stands between a server and its start.
pub(crate) const NOT_TRUSTED: &str = "not trusted; run plexus trust";

const FILE: &str = "trust.json";

/// The approvals that the user gave.
#[derive(Debug)]
pub(crate) struct Approvals {
    file: PathBuf,
    given: BTreeSet<Approval>,
}

/// That one server of one project may be started, as long as its definition stays the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// The project's folder.
    pub(crate) project: PathBuf,
    /// The server's name.
    pub(crate) server: String,
    /// The digest of its definition.
    digest: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Written {
    approved: BTreeSet<Approval>,
}

impl Approvals {
    /// Reads the approvals in the data directory.
    ///
    /// # Errors
    /// They cannot be read. Then nothing is approved.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Self> {
        let file = data.join(FILE);
        let written = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} cannot be understood; remove it", file.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Written::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be read", file.display()));
            }
        };
        Ok(Self {
            file,
            given: written.approved,
        })
    }

    /// No approval at all.
    pub(crate) fn none(data: &Path) -> Self {
        Self {
            file: data.join(FILE),
            given: BTreeSet::new(),
        }
    }

    /// Whether the server may be started: only what came with a project needs approval.
    pub(crate) fn admit(&self, project: &Path, entry: &ServerEntry) -> bool {
        !needs_approval(entry) || self.given.contains(&Approval::of(project, entry))
    }

    /// Every approval that was given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Approval> {
        self.given.iter()
    }

    /// Approves a server as it is defined now, in place of what was approved under its name.
    pub(crate) fn give(&mut self, project: &Path, entry: &ServerEntry) {
        let approval = Approval::of(project, entry);
        self.given
            .retain(|known| known.project != approval.project || known.server != entry.name);
        self.given.insert(approval);
    }

    /// Takes back what `is_meant` says, and returns it.
    pub(crate) fn revoke(&mut self, is_meant: impl Fn(&Approval) -> bool) -> Vec<Approval> {
        self.given.extract_if(.., |known| is_meant(known)).collect()
    }

    /// Writes the approvals down.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let written = Written {
            approved: self.given.clone(),
        };
        let text = serde_json::to_string_pretty(&written)? + "\n";
        edit::write(&self.file, &text)
            .with_context(|| format!("{} cannot be written", self.file.display()))
    }
}

impl Approval {
    fn of(project: &Path, entry: &ServerEntry) -> Self {
        let digits = entry.approval().map(|byte| format!("{byte:02x}"));
        Self {
            project: real(project),
            server: entry.name.clone(),
            digest: digits.concat(),
        }
    }
}

/// Whether a server may have come with the project, so that its user must say first that it may be
/// started. The user's own file for the project lies in it, too, and whoever made the project can
/// have put it there.
pub(crate) fn needs_approval(entry: &ServerEntry) -> bool {
    match entry.source.scope {
        Scope::Local | Scope::Project => true,
        Scope::Explicit | Scope::User => false,
    }
}

/// A folder by the name that it has whichever way one comes to it.
pub(crate) fn real(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}
