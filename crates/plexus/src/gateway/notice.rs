//! The notice to clients about servers that are not available.

use plexus_mcp_client::ServerState;
use plexus_mcp_config::ConfigProblem;
use plexus_mcp_hub::MemberStatus;

use super::{Gateway, members};
use crate::trust::NOT_TRUSTED;

impl Gateway {
    /// The servers that are defined but not among the members, because their definitions or names
    /// cannot be used, each with the problem.
    pub(super) fn refused(&self) -> Vec<(String, ConfigProblem)> {
        let members = self.hub.status();
        let current = self.current();
        let refused = members::refused(&current.problems, &current.servers);
        refused
            .into_iter()
            .filter(|problem| {
                let name = problem.server.as_deref().unwrap_or_default();
                !members
                    .iter()
                    .any(|member| *member.name == *name && member.status.is_some())
            })
            .map(|problem| {
                let name = problem.server.as_deref().unwrap_or_default();
                (name.to_owned(), problem.clone())
            })
            .collect()
    }

    /// Tells clients how many servers are not available.
    pub(super) fn update_notice(&self) {
        let members = self.hub.status();
        let failed = members
            .iter()
            .filter(|member| is_unavailable(member))
            .count();
        let broken = self
            .current()
            .problems
            .iter()
            .any(ConfigProblem::is_about_settings);
        let mut notices = Vec::new();
        match failed + self.refused().len() {
            0 => {}
            1 => notices.push("1 server is not available: run `plexus status`.".to_owned()),
            many => notices.push(format!(
                "{many} servers are not available: run `plexus status`."
            )),
        }
        if broken {
            notices.push(
                "A plexus.toml has an error, so the settings from before it apply: run `plexus \
                 doctor`."
                    .to_owned(),
            );
        }
        let notice = (!notices.is_empty()).then(|| notices.join(" "));
        self.hub.set_notice(notice);
    }
}

/// Whether an enabled server cannot be used: it has failed, or waits for the user.
fn is_unavailable(member: &MemberStatus) -> bool {
    match member.state() {
        ServerState::Failed | ServerState::NeedsAuth => true,
        ServerState::Pending => member.reason() == Some(NOT_TRUSTED),
        _ => false,
    }
}
