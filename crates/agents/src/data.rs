//! The stored data of all built-in services.

use plexus_mcp_builtins::{Data, DataPaths};
use plexus_mcp_store::{Migrations, OpenError, Store};

use crate::claudecode::{self, Sessions};
use crate::cone::{self, Cones};
use crate::loopback::{self, Permissions};
use crate::model::Models;

/// The tables of this crate's services, in the database that all services share.
const MIGRATIONS: [Migrations; 3] = [
    cone::MIGRATIONS,
    loopback::MIGRATIONS,
    claudecode::MIGRATIONS,
];

/// The stored data of all built-in services. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentData {
    /// The data of the services in `plexus-mcp-builtins`.
    pub builtins: Data,
    /// Conversations with models.
    pub cones: Cones,
    /// Permission requests of agents.
    pub permissions: Permissions,
    /// Sessions of agents.
    pub sessions: Sessions,
}

impl AgentData {
    /// Opens the databases: see [`Data::open`].
    ///
    /// # Errors
    /// A database cannot be used. The error says what to do.
    pub fn open(places: &DataPaths) -> Result<Self, OpenError> {
        Ok(Self::new(Data::open_with(places, &MIGRATIONS)?))
    }

    /// Opens each database when it is first needed: see [`Data::at`].
    pub fn at(places: &DataPaths) -> Self {
        Self::new(Data::at_with(places, &MIGRATIONS))
    }

    fn new(builtins: Data) -> Self {
        Self {
            cones: Cones::new(builtins.trees.clone(), Models::none()),
            permissions: Permissions::new(builtins.shared().clone()),
            sessions: Sessions::new(builtins.shared().clone()),
            builtins,
        }
    }

    /// Uses these models for the conversations.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.cones = Cones::new(self.builtins.trees.clone(), models);
        self
    }

    /// The databases, the shared one first.
    pub fn stores(&self) -> &[Store] {
        self.builtins.stores()
    }
}
