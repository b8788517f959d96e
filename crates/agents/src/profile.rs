//! Compatibility profiles: the tool sets of the three specifications that Plexus implements.

use plexus_mcp_builtins::context::ghost_context;
use plexus_mcp_builtins::task::{BOSSMAN_METHODS, bossman_tasks};
use plexus_mcp_builtins::{AliasedService, Names};
use plexus_mcp_core::{BuildError, Implementation, LocalService};

use crate::data::AgentData;
use crate::service::{Extras, service};

/// The set of tools that clients see, and the spelling of their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the surfaces that the product offers"
)]
pub enum Profile {
    /// All services, with underscores in names, which every model API accepts.
    #[default]
    Plexus,
    /// All services, as the specification of Substrate has them: dots in names, lists that may
    /// change (S003-10, S003-16).
    Substrate,
    /// The context graph as the specification of Ghost has it: one tool, `query_context` (S000-17,
    /// S000-20).
    Ghost,
    /// The task list as the specification of Bossman has it: eight tools without a namespace
    /// (S002-18, S002-20).
    Bossman,
}

/// Builds the service of a profile, on this data. `extras` applies to the profiles with all
/// services. `version` is that of the program; Ghost and Bossman have the version that their
/// specification fixes.
///
/// # Errors
/// A definition is not valid, which is a bug.
pub fn profile(
    profile: Profile,
    version: &str,
    data: &AgentData,
    extras: &Extras,
) -> Result<AliasedService, BuildError> {
    match profile {
        Profile::Plexus => service(Names::Underscored, version, data, extras),
        Profile::Substrate => {
            let service = service(Names::Dotted, version, data, extras)?;
            service.edit(|builder| {
                let identity = Implementation::new("substrate", version);
                builder.identity(identity).without_instructions()
            })
        }
        Profile::Ghost => {
            let builder = LocalService::builder("contextgraph-ghost", "1.0.0")
                .unchanging()
                .silent();
            let service = ghost_context(builder, &data.builtins.context).build()?;
            let service = AliasedService::new(service, Names::Flat, &data.builtins);
            Ok(service.alias_listed("context.query", "query_context"))
        }
        Profile::Bossman => {
            let builder = LocalService::builder("bossman", "0.1.0").unchanging();
            let service = bossman_tasks(builder, &data.builtins.tasks).build()?;
            let service = AliasedService::new(service, Names::Flat, &data.builtins);
            Ok(BOSSMAN_METHODS.iter().fold(service, |service, method| {
                service.alias_listed(&format!("task.{method}"), method)
            }))
        }
    }
}
