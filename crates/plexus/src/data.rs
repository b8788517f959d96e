//! What the program remembers from one run to the next.

use anyhow::Context;
use plexus_activations::{Data, Places};

use crate::announce;

/// Opens the databases that the environment asks for.
pub(crate) fn open() -> anyhow::Result<Data> {
    Ok(Data::open(&places()?)?)
}

/// The same, for a server: what cannot be used now is said, and costs only the tools that need it.
pub(crate) fn open_in_time() -> anyhow::Result<Data> {
    let (data, problems) = Data::open_in_time(&places()?);
    for problem in problems {
        announce::problem(&format!("{:#}", anyhow::Error::from(problem)));
    }
    Ok(data)
}

fn places() -> anyhow::Result<Places> {
    Places::from_environment(|name| std::env::var_os(name))
        .context("there is no place for data; name a folder with PLEXUS_DATA_DIR")
}
