//! What the program remembers from one run to the next.

use std::path::PathBuf;

use anyhow::Context;
use plexus_activations::model::Models;
use plexus_activations::{Data, Places, StoreError};

use crate::announce;

/// Opens the databases that the environment asks for, with the models that it has keys for.
pub(crate) fn open() -> anyhow::Result<Data> {
    Ok(Data::open(&places()?)?.with_models(models()))
}

/// The same, but they are opened when they are needed: what cannot be used costs only the tools that
/// need it.
pub(crate) fn when_needed() -> anyhow::Result<Data> {
    Ok(Data::at(&places()?).with_models(models()))
}

/// Says on standard error which databases cannot be used.
pub(crate) async fn announce_problems(data: &Data) {
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
