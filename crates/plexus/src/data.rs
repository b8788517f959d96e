//! What the program remembers from one run to the next.

use std::path::PathBuf;

use anyhow::Context;
use plexus_activations::{Data, Places};

/// Opens the databases that the environment asks for.
pub(crate) fn open() -> anyhow::Result<Data> {
    Ok(Data::open(&places()?)?)
}

/// The folder that everything is kept in.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    Ok(places()?.directory)
}

fn places() -> anyhow::Result<Places> {
    Places::from_environment(|name| std::env::var_os(name))
        .context("there is no place for data; name a folder with PLEXUS_DATA_DIR")
}
