//! Approvals of what the settings files of a project allow.

use std::path::{Path, PathBuf};

use plexus_mcp_config::{ConfigProblem, Loaded, Policy};
use serde::{Deserialize, Serialize};

use super::approvals::{Approvals, real};
use crate::printable::one_line;

/// The approval of the rules in one settings file of a project. It is valid as long as these rules
/// are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RulesApproval {
    /// The project's folder.
    pub(super) project: PathBuf,
    /// The settings file.
    pub(super) file: PathBuf,
    /// The digest of its rules.
    digest: String,
}

impl RulesApproval {
    pub(super) fn of(project: &Path, policy: &Policy, file: &Path) -> Self {
        let digits = policy.approval_of(file).map(|byte| format!("{byte:02x}"));
        Self {
            project: real(project),
            file: real(file),
            digest: digits.concat(),
        }
    }
}

/// Lets approved rules of the project allow calls, and reports the files whose rules wait for
/// approval.
pub(crate) fn apply(approvals: &Approvals, project: &Path, loaded: &mut Loaded) {
    let policy = &mut loaded.settings.policy;
    approve_given(approvals, project, policy);
    let waiting = policy.unapproved();
    loaded.problems.extend(waiting);
}

/// The files of the project whose rules wait for approval.
pub(crate) fn unapproved(
    approvals: &Approvals,
    project: &Path,
    policy: &Policy,
) -> Vec<ConfigProblem> {
    let mut policy = policy.clone();
    approve_given(approvals, project, &mut policy);
    policy.unapproved()
}

fn approve_given(approvals: &Approvals, project: &Path, policy: &mut Policy) {
    let files: Vec<_> = policy.files_awaiting_approval();
    let files: Vec<_> = files.into_iter().map(Path::to_owned).collect();
    for file in files {
        if approvals.admits_rules(&RulesApproval::of(project, policy, &file)) {
            policy.approve(&file);
        }
    }
}

/// The rules of a file, in order, as they are shown before they are approved.
pub(super) fn described(mark: char, policy: &Policy, file: &Path) -> String {
    let line = |text: String| one_line(&text) + "\n";
    let rules = policy.rules.iter().filter(|rule| rule.file == file);
    let rules = rules.map(|rule| {
        let pattern = rule.pattern.as_ref();
        let pattern = pattern.map_or_else(String::new, |pattern| format!("  pattern {pattern:?}"));
        line(format!(
            "    {} {}{pattern}",
            rule.action.as_str(),
            rule.tool
        ))
    });
    let rules: String = rules.collect();
    line(format!("{mark} permissions  {}", file.display())) + &rules
}
