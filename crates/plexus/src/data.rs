//! What the program remembers from one run to the next.

use std::path::PathBuf;

use anyhow::Context;
use plexus_activations::model::Models;
use plexus_activations::{Data, Places};

/// Opens the databases that the environment asks for, with the models that it has keys for.
pub(crate) fn open() -> anyhow::Result<Data> {
    Ok(Data::open(&places()?)?.with_models(models()))
}

/// The same, for a server: what cannot be used now costs only the tools that need it. What is wrong
/// comes second.
pub(crate) fn open_in_time() -> anyhow::Result<(Data, Vec<String>)> {
    let (data, problems) = Data::open_in_time(&places()?);
    let problems = problems.into_iter().map(anyhow::Error::from);
    let problems = problems.map(|problem| format!("{problem:#}")).collect();
    Ok((data.with_models(models()), problems))
}

/// The folder that everything is kept in.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    Ok(places()?.directory)
}

fn models() -> Models {
    Models::from_environment(|name| std::env::var_os(name))
}

fn places() -> anyhow::Result<Places> {
    Places::from_environment(|name| std::env::var_os(name))
        .context("there is no place for data; name a folder with PLEXUS_DATA_DIR")
}
