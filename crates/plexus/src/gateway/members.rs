//! From what is configured to the members of a hub.

use std::sync::Arc;

use plexus_client::{Definition, State};
use plexus_hub::config::{ConfigProblem, Kind, Loaded, ServerEntry};
use plexus_hub::{MemberKind, MemberSpec, manage, secrets};

use crate::auth::{self, Landing};
use crate::session::BUILTIN;
use crate::trust::NOT_TRUSTED;

/// Takes servers out that have names of ours.
pub(super) fn refuse_reserved(loaded: &mut Loaded) {
    let is_reserved = |entry: &mut ServerEntry| [BUILTIN, manage::NAME].contains(&&*entry.name);
    for entry in loaded.servers.extract_if(.., is_reserved) {
        let what = "this name is taken by Plexus itself; give the server another";
        let problem = ConfigProblem::new(entry.source.file, what);
        loaded.problems.push(problem.server(entry.name));
    }
}

/// A server of a file; `None` if it is part of the built-in ones. Nothing of it is started before
/// it is `admitted`, not even what fetches its secrets.
pub(super) fn configured(
    entry: &ServerEntry,
    admitted: bool,
    landing: Option<&Landing>,
) -> Option<MemberSpec> {
    let unavailable = |state, reason: &str| MemberKind::Unavailable {
        state,
        reason: reason.to_owned(),
    };
    let kind = match &entry.kind {
        Kind::Builtin(_) => return None,
        Kind::Unsupported(reason) => unavailable(State::Failed, reason),
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } if !admitted => {
            unavailable(State::Pending, NOT_TRUSTED)
        }
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } => {
            let (entry, landing) = (Arc::new(entry.clone()), landing.cloned());
            MemberKind::Deferred(Arc::new(move || {
                let (entry, landing) = (Arc::clone(&entry), landing.clone());
                Box::pin(async move {
                    let definition = definition(&entry, landing.as_ref()).await;
                    definition.map_err(|error| format!("{error:#}"))
                })
            }))
        }
    };
    let mut member = MemberSpec::new(entry.name.clone(), kind, entry.fingerprint());
    member.disabled = entry.disabled;
    member.auto_restart = entry.auto_restart;
    let filter = entry.tools.clone();
    member.shows_tool = Arc::new(move |tool| filter.admits(tool));
    Some(member)
}

async fn definition(entry: &ServerEntry, landing: Option<&Landing>) -> anyhow::Result<Definition> {
    let secrets = secrets::fetch(entry).await?;
    let mut definition = entry.definition(&secrets)?;
    definition = definition.for_clients();
    if let Some(affinity) = entry.affinity {
        definition.affinity = affinity;
    }
    auth::authorize_entry(&mut definition, entry, landing).await?;
    Ok(definition)
}
