//! All fixtures as one service.

use plexus_service::LocalService;

use crate::{asking, changes, events, prompts, resources, schemas, tools};

/// The fixtures. The suites call the first tool without arguments and expect a success.
pub(crate) fn service() -> anyhow::Result<LocalService> {
    let builder = LocalService::builder("plexus-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Fixtures for conformance and interoperability tests.");
    let builder = tools::add(builder);
    let builder = events::add(builder);
    let builder = asking::add(builder);
    let builder = changes::add(builder);
    let builder = schemas::add(builder)?;
    let builder = prompts::add(builder);
    let builder = resources::add(builder);
    Ok(builder.build()?)
}
