//! Converts configured servers to members of a hub.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{Definition, ServerState, Target};
use plexus_mcp_config::{ConfigProblem, Kind, Limits, Loaded, ServerEntry};
use plexus_mcp_hub::{MemberKind, MemberSpec, manage, secrets};

use crate::auth::{self, SignInCallbacks};
use crate::serve_chain::{self, OwnEndpoint};
use crate::session::BUILTIN;
use crate::trust::NOT_TRUSTED;

/// Removes servers with reserved names.
pub(crate) fn refuse_reserved(loaded: &mut Loaded) {
    let is_reserved = |entry: &mut ServerEntry| [BUILTIN, manage::NAME].contains(&&*entry.name);
    for entry in loaded.servers.extract_if(.., is_reserved) {
        let what = "this name is taken by Plexus itself; choose another name for the server";
        let problem = ConfigProblem::new(entry.source.file, what);
        loaded.problems.push(problem.server(entry.name));
    }
}

/// The problems that keep servers out, one for each: their definitions or names cannot be used, and
/// no other definition of the name is used in their place.
pub(crate) fn refused<'a>(
    problems: &'a [ConfigProblem],
    servers: &[ServerEntry],
) -> Vec<&'a ConfigProblem> {
    let mut refused: Vec<&ConfigProblem> = Vec::new();
    for problem in problems {
        let Some(name) = problem.server.as_deref() else {
            continue;
        };
        let is_used = servers.iter().any(|entry| entry.name == name);
        let is_known = refused.iter().any(|other| other.server == problem.server);
        if !is_used && !is_known {
            refused.push(problem);
        }
    }
    refused
}

/// Members for the servers whose definitions cannot be used, so that their tools are answered with
/// the reason. One whose name is taken or empty cannot be a member.
pub(super) fn broken(loaded: &Loaded) -> Vec<MemberSpec> {
    let mut taken: HashSet<String> = [BUILTIN, manage::NAME].map(str::to_owned).into();
    taken.extend(loaded.servers.iter().map(|entry| entry.name.to_lowercase()));
    let refused = refused(&loaded.problems, &loaded.servers).into_iter();
    refused
        .filter_map(|problem| {
            let name = problem.server.as_deref().filter(|name| !name.is_empty())?;
            taken.insert(name.to_lowercase()).then(|| {
                let kind = MemberKind::Unavailable {
                    state: ServerState::Failed,
                    reason: problem.to_string(),
                };
                MemberSpec::new(name, kind, [0; 32])
            })
        })
        .collect()
}

/// The member for a configured server; `None` if it is a built-in one. Before it is `admitted`, no
/// program of it is started, including those that fetch its secrets. `startup_wait` is the default
/// for servers without one. `chain` tells its program which gateways it was started by, and
/// `endpoint` is where the gateway itself serves HTTP.
pub(super) fn configured(
    entry: &ServerEntry,
    admitted: bool,
    callbacks: Option<&SignInCallbacks>,
    startup_wait: Option<Duration>,
    limits: &Arc<Limits>,
    chain: &str,
    endpoint: Option<&OwnEndpoint>,
) -> Option<MemberSpec> {
    let unavailable = |state, reason: &str| MemberKind::Unavailable {
        state,
        reason: reason.to_owned(),
    };
    let kind = match &entry.kind {
        Kind::Builtin(_) => return None,
        Kind::Stdio { .. } if let Some(reason) = serve_chain::loop_in(entry) => {
            unavailable(ServerState::Failed, &reason)
        }
        Kind::Http { .. } | Kind::Sse { .. }
            if let Some(reason) = endpoint.and_then(|own| own.loop_in(entry)) =>
        {
            unavailable(ServerState::Failed, &reason)
        }
        Kind::Unsupported(reason) => unavailable(ServerState::Failed, reason),
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } if !admitted => {
            unavailable(ServerState::Pending, NOT_TRUSTED)
        }
        Kind::Stdio { .. } | Kind::Http { .. } | Kind::Sse { .. } => {
            let (entry, callbacks) = (Arc::new(entry.clone()), callbacks.cloned());
            let (limits, chain) = (Arc::clone(limits), chain.to_owned());
            MemberKind::Deferred(Arc::new(move || {
                let (entry, callbacks) = (Arc::clone(&entry), callbacks.clone());
                let (limits, chain) = (Arc::clone(&limits), chain.clone());
                Box::pin(async move {
                    let definition = definition(&entry, callbacks.as_ref(), &limits).await;
                    let mut definition = definition.map_err(|error| format!("{error:#}"))?;
                    if let Target::Stdio(program) = &mut definition.target {
                        let variable = serve_chain::VARIABLE.to_owned();
                        program.env.insert(variable, Some(chain));
                    }
                    Ok(definition)
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
    if let Some(affinity) = entry.affinity {
        definition.affinity = affinity;
    }
    auth::authorize_entry(&mut definition, entry, callbacks).await?;
    Ok(definition)
}
