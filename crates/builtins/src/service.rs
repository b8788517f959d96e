//! The built-in services of this crate as one service.

use plexus_mcp_core::{BuildError, LocalService};

use crate::arbor::arbor;
use crate::context::context;
use crate::data::Data;
use crate::echo::echo;
use crate::health::{Servers, health};
use crate::names::Names;
use crate::task::{self, task};
use crate::tool_aliases::AliasedService;

/// The namespaces of this crate, in the order in which their tools are listed.
const NAMESPACES: [&str; 5] = ["health", "echo", "task", "context", "arbor"];

/// All services of this crate as the service `plexus` of this version, on this data. The tool
/// `health.check` reports on `servers`.
///
/// # Errors
/// A definition is not valid, which is a bug.
pub fn service(
    names: Names,
    version: &str,
    data: &Data,
    servers: &Servers,
) -> Result<AliasedService, BuildError> {
    let builder = LocalService::builder("plexus", version);
    let namespaces = NAMESPACES.to_vec();
    let builder = health(builder, names, namespaces, servers, data.stores());
    let builder = echo(builder, names);
    let builder = task(builder, names, &data.tasks);
    let builder = context(builder, names, &data.context);
    let builder = arbor(builder, names, &data.trees);
    Ok(AliasedService::new(builder.build()?, names, data).with_short_names())
}

impl AliasedService {
    /// Adds the names without a namespace that the specifications of Bossman and Ghost give to the
    /// tools of `task` and `context` (S000-20, S002-20).
    #[must_use]
    pub fn with_short_names(self) -> Self {
        let service = self.alias("query_context", "context", "query");
        task::METHODS.iter().fold(service, |service, method| {
            service.alias(method, "task", method)
        })
    }
}
