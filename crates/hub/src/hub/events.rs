//! What happens in a hub.

use std::sync::Arc;

use plexus_client::Status;
use tokio::sync::broadcast;

use super::{Hub, SetMembers};

/// Something that happened in a hub.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HubEvent {
    /// Members came, went or changed.
    Members(SetMembers),
    /// A member is doing differently.
    Status {
        /// Its name.
        name: Arc<str>,
        /// Whether it is turned on.
        enabled: bool,
        /// Its connection; `None` for a service in this process.
        status: Option<Status>,
    },
    /// A member offers something else.
    Catalogue {
        /// Its name.
        name: Arc<str>,
    },
}

impl Hub {
    /// What happens from now on. Whoever listens too slowly loses the oldest events.
    pub fn events(&self) -> broadcast::Receiver<HubEvent> {
        self.inner.events.subscribe()
    }
}
