//! The program's databases.

use std::path::PathBuf;

use anyhow::Context;
use plexus_mcp_agents::AgentData;
use plexus_mcp_agents::model::Models;
use plexus_mcp_builtins::{DataPaths, StoreError};

use crate::announce;

/// Opens the databases that the environment selects, with the models that it has keys for.
pub(crate) fn open() -> anyhow::Result<AgentData> {
    Ok(AgentData::open(&places()?)?.with_models(models()))
}

/// The same, but each database is opened when it is first needed: one that cannot be opened affects
/// only the tools that need it.
pub(crate) fn when_needed() -> anyhow::Result<AgentData> {
    Ok(AgentData::at(&places()?).with_models(models()))
}

/// Prints a warning for each database that cannot be used.
pub(crate) async fn announce_problems(data: &AgentData) {
    for store in data.stores() {
        match store.try_out().await {
            Ok(()) => {}
            Err(StoreError::Closed(error)) => {
                announce::problem(&format!("{:#}", anyhow::Error::from(*error)));
            }
            Err(error) => announce::problem(&error.to_string()),
        }
    }
}

/// The data directory.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    Ok(places()?.directory)
}

/// The models that the environment has keys for.
pub(crate) fn models() -> Models {
    Models::from_environment(|name| std::env::var_os(name))
}

fn places() -> anyhow::Result<DataPaths> {
    DataPaths::from_environment(|name| std::env::var_os(name))
        .context("there is no data directory; set PLEXUS_DATA_DIR")
}
