//! The surfaces of the founding systems.

use plexus_service::{BuildError, Implementation, LocalService};

use crate::aliased::Aliased;
use crate::context::founding_context;
use crate::data::Data;
use crate::names::Names;
use crate::service::{Extras, service_with};
use crate::task::{FOUNDING_METHODS, founding_task};

/// What is shown, and under which names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the surfaces that the product offers"
)]
pub enum Profile {
    /// Everything, with names that every model takes.
    #[default]
    Plexus,
    /// Everything, as the Substrate documents show it: dots in names, lists that may change
    /// (S003-10, S003-16).
    Substrate,
    /// The context graph as its founding document has it: one tool, `query_context` (S000-17,
    /// S000-20).
    Ghost,
    /// The task list as its founding document has it: eight tools without a namespace (S002-18,
    /// S002-20).
    Bossman,
}

/// What a profile shows, on this data; with `extras` where it shows everything. `version` is that of
/// the program; a founding system whose document fixes its own has that one.
///
/// # Errors
/// An activation is not well made.
pub fn profile(
    profile: Profile,
    version: &str,
    data: &Data,
    extras: &Extras,
) -> Result<Aliased, BuildError> {
    match profile {
        Profile::Plexus => service_with(Names::Underscored, version, data, extras),
        Profile::Substrate => {
            let service = service_with(Names::Dotted, version, data, extras)?;
            service.introduced(|builder| {
                let identity = Implementation::new("substrate", version);
                builder.identity(identity).without_instructions()
            })
        }
        Profile::Ghost => {
            let builder = LocalService::builder("contextgraph-ghost", "1.0.0")
                .unchanging()
                .silent();
            let service = founding_context(builder, &data.context).build()?;
            let service = Aliased::new(service, Names::Flat, data);
            Ok(service.also_called("context.query", "query_context"))
        }
        Profile::Bossman => {
            let builder = LocalService::builder("bossman", "0.1.0").unchanging();
            let service = founding_task(builder, &data.tasks).build()?;
            let service = Aliased::new(service, Names::Flat, data);
            Ok(FOUNDING_METHODS.iter().fold(service, |service, method| {
                service.also_called(&format!("task.{method}"), method)
            }))
        }
    }
}
