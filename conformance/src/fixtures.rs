//! All fixtures as one service.

use plexus_mcp_core::{Context, LocalService, NoArguments, Tool};

use crate::{asking, changes, events, prompts, resources, schemas, tools};

/// The fixtures, and `filler` more tools. The first tool must succeed without arguments, because
/// the suites call it so.
pub(crate) fn service(filler: usize) -> anyhow::Result<LocalService> {
    let builder = LocalService::builder("plexus-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Fixtures for conformance and interoperability tests.");
    let builder = tools::add(builder);
    let builder = events::add(builder);
    let builder = asking::add(builder);
    let builder = changes::add(builder);
    let builder = schemas::add(builder)?;
    let builder = prompts::add(builder);
    let mut builder = resources::add(builder);
    for number in 0..filler {
        let tool = Tool::new(format!("test_filler_{number:03}"));
        builder = builder.tool(tool, async |_: NoArguments, _: Context| "Filler");
    }
    Ok(builder.build()?)
}
