//! What the program remembers from one run to the next.

use std::path::PathBuf;

use anyhow::Context;
use plexus_activations::model::Models;
use plexus_activations::{Data, Places};

/// Opens the databases that the environment asks for, with the models that it has keys for.
pub(crate) fn open() -> anyhow::Result<Data> {
    let models = Models::from_environment(|name| std::env::var_os(name));
    Ok(Data::open(&places()?)?.with_models(models))
}

/// The folder that everything is kept in.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    Ok(places()?.directory)
}

fn places() -> anyhow::Result<Places> {
    Places::from_environment(|name| std::env::var_os(name))
        .context("there is no place for data; name a folder with PLEXUS_DATA_DIR")
}
