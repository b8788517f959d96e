//! The built-in tools and the servers that were configured, as one service.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plexus_hub::config::{self, Locations, SETTINGS_FILE, Scope, ServerEntry};
use plexus_hub::policy::Policy;
use plexus_hub::{Hub, MemberKind, MemberSpec, secrets};
use plexus_service::{Implementation, Service};

use crate::{VERSION, announce, auth, named};

/// How long the servers are waited for before the first client is answered without them. Clients
/// give up soon after two seconds.
const HEAD_START: Duration = Duration::from_millis(1500);

/// The servers of `files` beside the built-in service. What is wrong with one is said, and costs
/// the others nothing.
pub(crate) async fn open(builtin: Arc<dyn Service>, files: &[PathBuf]) -> Hub {
    let locations = Locations {
        explicit: files.to_vec(),
        ..Locations::default()
    };
    let loaded = config::load(&locations, &environment);
    let named: HashSet<_> = files.iter().collect();
    for problem in loaded
        .problems
        .iter()
        .filter(|problem| named.contains(&problem.file))
    {
        announce::problem(problem);
    }

    let mut builtin = MemberSpec::new("plexus", MemberKind::Local(builtin), [0; 32]);
    builtin.plain_names = true;
    let mut members = vec![builtin];
    let mut trusted = Vec::new();
    for entry in loaded.servers {
        if entry.source.scope == Scope::Explicit {
            match member(&entry).await {
                Ok(member) => {
                    members.push(member);
                    trusted.extend(entry.trusted.then_some(entry.name));
                }
                Err(problem) => announce::problem(&format!("{}: {problem:#}", entry.name)),
            }
        }
    }
    let hub = Hub::new(Implementation::new("plexus", VERSION));
    hub.set_policy(Policy::behind_client(&settings().policy).trusting(trusted));
    hub.set_members(members).await;
    hub.connect_in_background();
    // Whoever is not there by then is announced when it is.
    drop(tokio::time::timeout(HEAD_START, hub.settled()).await);
    hub
}

/// The settings of the user and of the project that we were started in. Servers beside the named
/// ones, and what may be wrong with them, are not our business here.
fn settings() -> config::Settings {
    let project = std::env::current_dir().unwrap_or_default();
    let loaded = config::load(&Locations::of(project, &environment), &environment);
    for problem in &loaded.problems {
        if problem.file.ends_with(SETTINGS_FILE) {
            announce::problem(problem);
        }
    }
    loaded.settings
}

async fn member(entry: &ServerEntry) -> anyhow::Result<MemberSpec> {
    let secrets = secrets::fetch(entry).await?;
    let mut definition = entry.definition(&secrets)?;
    definition.capabilities = named::everything()?;
    auth::authorize_entry(&mut definition, entry);
    let kind = MemberKind::Upstream(Box::new(definition));
    let mut member = MemberSpec::new(entry.name.clone(), kind, entry.fingerprint());
    member.disabled = entry.disabled;
    member.auto_restart = entry.auto_restart;
    let filter = entry.tools.clone();
    member.shows_tool = Arc::new(move |tool| filter.admits(tool));
    Ok(member)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is built, of which the environment is a part"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
