//! Converts configured servers to members of a hub.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{Definition, ServerState};
use plexus_mcp_config::{ConfigProblem, Kind, Limits, Loaded, ServerEntry};
use plexus_mcp_hub::{MemberKind, MemberSpec, manage, secrets};

use crate::auth::{self, SignInCallbacks};
use crate::session::BUILTIN;
use crate::trust::NOT_TRUSTED;

/// Removes servers with reserved names.
pub(super) fn refuse_reserved(loaded: &mut Loaded) {
    let is_reserved = |entry: &mut ServerEntry| [BUILTIN, manage::NAME].contains(&&*entry.name);
    for entry in loaded.servers.extract_if(.., is_reserved) {
        let what = "this name is taken by Plexus itself; choose another name for the server";
        let problem = ConfigProblem::new(entry.source.file, what);
        loaded.problems.push(problem.server(entry.name));
    }
}

/// The member for a configured server; `None` if it is a built-in one. Before it is `admitted`, no
/// program of it is started, including those that fetch its secrets. `startup_wait` is the default
/// for servers without one.
pub(super) fn configured(
    entry: &ServerEntry,
    admitted: bool,
    callbacks: Option<&SignInCallbacks>,
    startup_wait: Option<Duration>,
    limits: &Arc<Limits>,
) -> Option<MemberSpec> {
    let unavailable = |state, reason: &str| MemberKind::Unavailable {
        state,
        reason: reason.to_owned(),
    };
    let kind = match &entry.kind {
        Kind::Builtin(_) => return None,
        Kind::Unsupported(reason) => unavailable(ServerState::Failed, reason),
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } if !admitted => {
            unavailable(ServerState::Pending, NOT_TRUSTED)
        }
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } => {
            let (entry, callbacks) = (Arc::new(entry.clone()), callbacks.cloned());
            let limits = Arc::clone(limits);
            MemberKind::Deferred(Arc::new(move || {
                let (entry, callbacks) = (Arc::clone(&entry), callbacks.clone());
                let limits = Arc::clone(&limits);
                Box::pin(async move {
                    let definition = definition(&entry, callbacks.as_ref(), &limits).await;
                    definition.map_err(|error| format!("{error:#}"))
                })
            }))
        }
    };
    let mut member = MemberSpec::new(entry.name.clone(), kind, entry.fingerprint());
    member.disabled = entry.disabled;
    member.scope = Some(entry.source.scope);
    member.auto_restart = entry.auto_restart;
    if let Some(wait) = entry.startup_wait.or(startup_wait) {
        member.startup_wait = wait;
    }
    let filter = entry.tools.clone();
    member.shows_tool = Arc::new(move |tool| filter.admits(tool));
    Some(member)
}

async fn definition(
    entry: &ServerEntry,
    callbacks: Option<&SignInCallbacks>,
    limits: &Limits,
) -> anyhow::Result<Definition> {
    let secrets = secrets::fetch(entry).await?;
    let mut definition = entry.definition(&secrets, limits)?;
    definition = definition.for_clients();
    if let Some(affinity) = entry.affinity {
        definition.affinity = affinity;
    }
    auth::authorize_entry(&mut definition, entry, callbacks).await?;
    Ok(definition)
}
