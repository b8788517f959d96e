//! Environment variables and working directory of this process.

use std::path::PathBuf;

use anyhow::Context;
use plexus_mcp_config::{Locations, Scope};

/// The locations of the configuration files for the current directory and user.
pub(crate) fn locations() -> anyhow::Result<Locations> {
    let project = std::env::current_dir()
        .context("the current directory does not exist; change to another")?;
    Ok(Locations::of(project, &environment))
}

/// The file to which servers of a scope are added.
pub(crate) fn file_of(locations: &Locations, scope: Scope) -> anyhow::Result<PathBuf> {
    locations.file(scope).with_context(|| {
        format!(
            "there is no file of the {} scope; set HOME to your home directory",
            scope.as_str()
        )
    })
}

/// The value of an environment variable.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}
