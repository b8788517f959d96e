//! Warnings about servers that cannot be connected or are lost.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_mcp_client::{ServerState, Status};
use plexus_mcp_hub::HubEvent;
use tokio::sync::broadcast::error::RecvError;

use super::Gateway;
use crate::announce;
use crate::trust::NOT_TRUSTED;

impl Gateway {
    /// Prints a warning when a server cannot be connected or is lost, for as long as it is polled
    /// (S001-41, S001-61).
    pub(crate) async fn announce_failures(&self) {
        let mut events = self.hub.events();
        let mut told: HashMap<Arc<str>, String> = HashMap::new();
        // Some servers may have failed before the subscription.
        self.tell_failures(&mut told);
        loop {
            let event = events.recv().await;
            // A server that was starting is stopped, which is no failure.
            if self.hub.starts_nothing_new() {
                return;
            }
            match event {
                Ok(HubEvent::Status {
                    name,
                    status: Some(status),
                    enabled: true,
                }) => {
                    tell_failure(&mut told, &name, &status);
                    self.update_notice();
                }
                Ok(HubEvent::Status { .. }) => self.update_notice(),
                // Events that were lost may have had failures.
                Ok(HubEvent::Members(_)) | Err(RecvError::Lagged(_)) => {
                    self.tell_failures(&mut told);
                }
                Ok(_) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Prints which servers are not available, unless the same was printed last, or the problem of
    /// their definitions was.
    fn tell_failures(&self, told: &mut HashMap<Arc<str>, String>) {
        let problems = self.problems();
        for member in self.hub.status() {
            let is_told = member
                .reason()
                .is_some_and(|reason| problems.iter().any(|problem| problem == reason));
            if let Some(status) = member.status.filter(|_| member.enabled && !is_told) {
                tell_failure(told, &member.name, &status);
            }
        }
    }
}

/// Prints why a server is not connected, unless the same was printed since it was last connected.
fn tell_failure(told: &mut HashMap<Arc<str>, String>, name: &Arc<str>, status: &Status) {
    if status.state == ServerState::Connected {
        told.remove(name);
        return;
    }
    let failed = matches!(status.state, ServerState::Failed | ServerState::NeedsAuth)
        || status.reason.as_deref() == Some(NOT_TRUSTED);
    let reason = status.reason.as_deref().unwrap_or("it gave no reason");
    if failed && told.get(name).is_none_or(|last| last != reason) {
        announce::problem(&format!("server {name:?}: {}: {reason}", status.state));
        told.insert(Arc::clone(name), reason.to_owned());
    }
}
