//! Approvals of the servers of projects.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use plexus_mcp_config::{Scope, ServerEntry, edit};
use serde::{Deserialize, Serialize};

use super::rules::RulesApproval;
use crate::data;
use crate::serve_chain::loop_in;

/// The status of a server without approval.
pub(crate) const NOT_TRUSTED: &str = "not trusted; run plexus trust";

const TRUST_FILE: &str = "trust.json";

/// The user's approvals.
#[derive(Debug)]
pub(crate) struct Approvals {
    file: PathBuf,
    given: BTreeSet<Approval>,
    rules: BTreeSet<RulesApproval>,
}

/// The approvals for the servers of one project.
#[derive(Debug)]
pub(crate) struct ProjectApprovals {
    project: PathBuf,
    approvals: Approvals,
}

impl ProjectApprovals {
    /// Reads the approvals for the servers of `project`.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn read(project: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            project: project.to_owned(),
            approvals: Approvals::read(&data::directory()?)?,
        })
    }

    /// Whether the server needs no approval, or has it.
    pub(crate) fn admit(&self, entry: &ServerEntry) -> bool {
        self.approvals.admit(&self.project, entry)
    }

    /// Why a server is not started, if so: it is not approved, or would start Plexus in a loop.
    pub(crate) fn reason_against(&self, entry: &ServerEntry) -> Option<String> {
        let not_trusted = (!self.admit(entry)).then(|| NOT_TRUSTED.to_owned());
        not_trusted.or_else(|| loop_in(entry))
    }
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
    #[serde(default)]
    rules: BTreeSet<RulesApproval>,
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
            rules: contents.rules,
        })
    }

    /// No approval at all.
    pub(crate) fn none(data: &Path) -> Self {
        Self {
            file: data.join(TRUST_FILE),
            given: BTreeSet::new(),
            rules: BTreeSet::new(),
        }
    }

    /// Whether these rules of a project's file may allow calls.
    pub(super) fn admits_rules(&self, rules: &RulesApproval) -> bool {
        self.rules.contains(rules)
    }

    /// Approves the current rules of a file, and replaces an earlier approval of the same file.
    pub(super) fn give_rules(&mut self, rules: RulesApproval) {
        self.rules
            .retain(|known| known.project != rules.project || known.file != rules.file);
        self.rules.insert(rules);
    }

    /// All approvals of rules.
    pub(super) fn given_rules(&self) -> impl Iterator<Item = &RulesApproval> {
        self.rules.iter()
    }

    /// Removes the approvals of a project's rules, and returns them.
    pub(super) fn revoke_rules(&mut self, project: &Path) -> Vec<RulesApproval> {
        let is_of_project = |known: &RulesApproval| known.project == project;
        self.rules.extract_if(.., is_of_project).collect()
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
            rules: self.rules.clone(),
        };
        let text = serde_json::to_string_pretty(&contents)? + "\n";
        let folder = self.file.parent().map_or(Ok(()), edit::private_directory);
        folder
            .and_then(|()| edit::write(&self.file, &text))
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
