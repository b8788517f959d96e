//! Events of a hub.

use std::sync::Arc;

use plexus_mcp_client::Status;
use tokio::sync::broadcast;

use super::{Hub, SetMembers};

/// An event of a hub.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HubEvent {
    /// Members were added, removed or changed.
    Members(SetMembers),
    /// The status of a member changed.
    Status {
        /// Its name.
        name: Arc<str>,
        /// Whether it is enabled.
        enabled: bool,
        /// The status of its connection; `None` for a service in this process.
        status: Option<Status>,
    },
    /// The catalogue of a member changed.
    Catalogue {
        /// Its name.
        name: Arc<str>,
    },
}

impl Hub {
    /// A receiver of all events from now on. A receiver that lags loses the oldest events.
    pub fn events(&self) -> broadcast::Receiver<HubEvent> {
        self.inner.events.subscribe()
    }
}
