//! Where this process runs, as far as configuration depends on it.

use std::path::PathBuf;

use anyhow::Context;
use plexus_hub::config::{Locations, Scope};

/// Where the configuration of the current directory and user is.
pub(crate) fn locations() -> anyhow::Result<Locations> {
    let project =
        std::env::current_dir().context("the current directory cannot be found; go to another")?;
    Ok(Locations::of(project, &environment))
}

/// The file to which servers of a scope are added.
pub(crate) fn file_of(locations: &Locations, scope: Scope) -> anyhow::Result<PathBuf> {
    locations.file(scope).with_context(|| {
        format!(
            "there is no file of the {} scope; say with HOME where your home directory is",
            scope.as_str()
        )
    })
}

/// What a variable holds.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}
