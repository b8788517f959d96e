//! Approvals of the servers of projects.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use plexus_mcp_config::{Scope, ServerEntry, edit};
use serde::{Deserialize, Serialize};

/// The status of a server without approval.
pub(crate) const NOT_TRUSTED: &str = "not trusted; run plexus trust";

const TRUST_FILE: &str = "trust.json";

/// The user's approvals.
#[derive(Debug)]
pub(crate) struct Approvals {
    file: PathBuf,
    given: BTreeSet<Approval>,
}

/// The approval of one server of one project. It is valid as long as the server's definition is
/// unchanged.
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
struct TrustFile {
    approved: BTreeSet<Approval>,
}

impl Approvals {
    /// Reads the approvals in the data directory.
    ///
    /// # Errors
    /// They cannot be read. Then no server is approved.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Self> {
        let file = data.join(TRUST_FILE);
        let contents = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} cannot be parsed; remove it", file.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => TrustFile::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be read", file.display()));
            }
        };
        Ok(Self {
            file,
            given: contents.approved,
        })
    }

    /// No approval at all.
    pub(crate) fn none(data: &Path) -> Self {
        Self {
            file: data.join(TRUST_FILE),
            given: BTreeSet::new(),
        }
    }

    /// Whether the server may be started: only servers of a project need approval.
    pub(crate) fn admit(&self, project: &Path, entry: &ServerEntry) -> bool {
        !needs_approval(entry) || self.given.contains(&Approval::of(project, entry))
    }

    /// All approvals.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Approval> {
        self.given.iter()
    }

    /// Approves the current definition of a server, and replaces an earlier approval of the same
    /// name.
    pub(crate) fn give(&mut self, project: &Path, entry: &ServerEntry) {
        let approval = Approval::of(project, entry);
        self.given
            .retain(|known| known.project != approval.project || known.server != entry.name);
        self.given.insert(approval);
    }

    /// Removes the matching approvals, and returns them.
    pub(crate) fn revoke(&mut self, matches: impl Fn(&Approval) -> bool) -> Vec<Approval> {
        self.given.extract_if(.., |known| matches(known)).collect()
    }

    /// Writes the approvals to the file.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let contents = TrustFile {
            approved: self.given.clone(),
        };
        let text = serde_json::to_string_pretty(&contents)? + "\n";
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

/// Whether a server may be defined by the author of the project, so that the user must approve it.
/// That includes the user's own file for the project: it is in the project's folder, so the author
/// can have put it there.
pub(crate) fn needs_approval(entry: &ServerEntry) -> bool {
    match entry.source.scope {
        Scope::Local | Scope::Project => true,
        Scope::Explicit | Scope::User => false,
    }
}

/// The canonical path of a folder.
pub(crate) fn real(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}
