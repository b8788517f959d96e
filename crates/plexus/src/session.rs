//! The configured servers, for one command: opened, asked and left again.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use plexus_activations::Names as BuiltinNames;
use plexus_client::{ClientCapabilities, State};
use plexus_hub::config::{self, Scope, ServerEntry, Settings};
use plexus_hub::names::Names;
use plexus_hub::policy::Policy;
use plexus_hub::{Hub, MemberKind, MemberSpec, MemberStatus, Origin};
use plexus_mcp::Revision;
use plexus_service::{Implementation, Limits, Peer, Principal, Raw, Section};

use crate::live::Live;
use crate::output::harmless;
use crate::signals::Signals;
use crate::surroundings::{environment, locations};
use crate::{VERSION, announce, data, gateway, serve};

/// The name of the member that is built in.
pub(crate) const BUILTIN: &str = "plexus";

/// Which servers there are.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Use the MCP servers of this file as well, which is written as .mcp.json is.
    ///
    /// It has precedence over all other files. This may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
}

/// The servers, each connected when it is needed.
pub(crate) struct Session {
    pub(crate) hub: Hub,
    pub(crate) settings: Settings,
    /// Every server that is configured, used or not.
    pub(crate) configured: Vec<Configured>,
    pub(crate) peer: Arc<Peer>,
}

/// A server that is configured.
pub(crate) struct Configured {
    pub(crate) entry: ServerEntry,
    /// Why it is not used, if it is not.
    pub(crate) left_out: Option<String>,
}

/// Opens the servers, does `work` with them, and leaves them, also if a signal ends it before.
pub(crate) fn run(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    serve::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let opened = tokio::select! {
            opened = Session::open(arguments) => opened,
            signal = signals.next() => return Ok(signal.exit_code()),
        };
        let session = opened?;
        // A call that is dropped here is cancelled at its server.
        let ended = tokio::select! {
            ended = work(&session) => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        };
        tokio::select! {
            () = session.hub.close() => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        }
    })
}

impl Session {
    async fn open(arguments: &ConfigArgs) -> anyhow::Result<Self> {
        let mut locations = locations()?;
        locations.explicit.clone_from(&arguments.mcp_config);
        let loaded = config::load(&locations, &environment);
        for problem in &loaded.problems {
            announce::problem(problem);
        }

        let builtin =
            plexus_activations::service(BuiltinNames::Underscored, VERSION, &data::open()?)?;
        let mut builtin = MemberSpec::new(BUILTIN, MemberKind::Local(Arc::new(builtin)), [0; 32]);
        builtin.plain_names = true;
        let mut members = vec![builtin];
        let mut configured = Vec::new();
        for entry in loaded.servers {
            let left_out = match admit(&entry).await {
                Ok(member) => {
                    members.push(member);
                    None
                }
                Err(reason) => Some(format!("{reason:#}")),
            };
            configured.push(Configured { entry, left_out });
        }
        let trusted = configured.iter().filter(|server| server.entry.trusted);
        let trusted = trusted.map(|server| server.entry.name.clone());
        let hub = Hub::new(Implementation::new("plexus", VERSION));
        hub.set_policy(Policy::behind_client(&loaded.settings.policy).trusting(trusted));
        hub.set_members(members).await;
        Ok(Self {
            hub,
            settings: loaded.settings,
            configured,
            peer: Arc::new(peer()?),
        })
    }

    /// Connects these servers, and says which cannot be.
    pub(crate) async fn connect(&self, is_wanted: impl Fn(&str) -> bool) {
        let waiting = self.hub.status();
        let waiting = waiting.iter().filter(|member| {
            let is_pending = |status: &plexus_client::Status| status.state == State::Pending;
            member.enabled
                && is_wanted(&member.name)
                && member.status.as_ref().is_some_and(is_pending)
        });
        let waiting: Vec<_> = waiting.map(|member| Arc::clone(&member.name)).collect();
        if waiting.is_empty() {
            return;
        }
        let mut live = Live::new(format!("connecting {}", waiting.join(", ")));
        let is_waiting = |name: &str| waiting.iter().any(|waiting| &**waiting == name);
        live.during(self.hub.connect_some(is_waiting)).await;
        for member in self.hub.status() {
            if is_waiting(&member.name)
                && let Some(reason) = failure(&member)
            {
                announce::problem(&format!("{}: {reason}", member.name));
            }
        }
    }

    /// Connects every server.
    pub(crate) async fn connect_all(&self) {
        for server in &self.configured {
            if let Some(reason) = &server.left_out {
                announce::problem(&format!("{}: {reason}", server.entry.name));
            }
        }
        self.connect(|_| true).await;
    }

    /// Connects the server that has this entry, and no other if that can be told.
    pub(crate) async fn find(&self, section: Section, name: &str) -> Option<Origin> {
        if let Some(origin) = self.hub.origin(section, name) {
            self.connect(|member| *member == *origin.member).await;
            return self.hub.origin(section, name);
        }
        if matches!(section, Section::Tools | Section::Prompts) {
            self.connect(|member| may_own(member, name)).await;
            if let Some(origin) = self.hub.origin(section, name) {
                return Some(origin);
            }
        }
        self.connect_all().await;
        self.hub.origin(section, name)
    }

    /// How a server is doing.
    pub(crate) fn status(&self, name: &str) -> Option<MemberStatus> {
        let members = self.hub.status();
        members.into_iter().find(|member| &*member.name == name)
    }

    /// Where a server is configured.
    pub(crate) fn configured(&self, name: &str) -> Option<&Configured> {
        let mut servers = self.configured.iter();
        servers.find(|server| server.entry.name == name)
    }

    /// Why a configured server offers nothing, if it does not.
    pub(crate) fn absence(&self, server: &Configured) -> Option<String> {
        if let Some(reason) = &server.left_out {
            return Some(reason.clone());
        }
        if server.entry.disabled {
            let file = server.entry.source.file.display();
            return Some(format!("it is disabled in {file}"));
        }
        failure(&self.status(&server.entry.name)?)
    }

    /// Checks that there is a server of this name.
    ///
    /// # Errors
    /// There is none, or it is not used.
    pub(crate) fn check_server(&self, name: &str) -> anyhow::Result<()> {
        if name == BUILTIN {
            return Ok(());
        }
        let server = self.configured(name).with_context(|| {
            format!("there is no server {name:?}; for those there are: plexus mcp list")
        })?;
        match &server.left_out {
            Some(reason) => anyhow::bail!("the server {name:?} is not used: {reason}"),
            None if server.entry.disabled => {
                anyhow::bail!(
                    "the server {name:?} is disabled in {}",
                    server.entry.source.file.display()
                )
            }
            None => Ok(()),
        }
    }
}

/// Why a server that should be connected is not.
pub(crate) fn failure(member: &MemberStatus) -> Option<String> {
    let status = member.status.as_ref()?;
    match status.state {
        State::Failed | State::NeedsAuth => {
            let reason = status.reason.as_deref().unwrap_or(status.state.as_str());
            Some(harmless(reason))
        }
        _ => None,
    }
}

/// A server that may be used, as a member of the hub.
async fn admit(entry: &ServerEntry) -> anyhow::Result<MemberSpec> {
    // What came with a project is not started before its user said so.
    anyhow::ensure!(
        matches!(entry.source.scope, Scope::Explicit | Scope::User),
        "it came with the project; name the file to use it: --mcp-config {}",
        entry.source.file.display()
    );
    gateway::member(entry).await
}

/// Whether a server of this name could own an entry that is shown under that one. Names are not
/// taken apart to find the owner; this only says whom to ask first.
pub(crate) fn may_own(server: &str, name: &str) -> bool {
    let prefix = Names::default().add(server, "", ());
    let unaliased = name.strip_prefix("mcp__").unwrap_or(name);
    [name, unaliased]
        .iter()
        .any(|name| name.starts_with(&*prefix) || name.starts_with(&format!("{server}__")))
        || name.starts_with(&format!("{server}."))
}

/// Who we are to the servers: a person who can be asked, without a model.
fn peer() -> anyhow::Result<Peer> {
    let capabilities = r#"{"roots":{},"elicitation":{"form":{},"url":{}}}"#;
    let capabilities = Raw::parse(capabilities.into(), &Limits::default())?;
    Ok(Peer::new(
        Revision::NEWEST_STATELESS,
        ClientCapabilities::from_raw(&capabilities)?,
        None,
        Principal::anonymous(),
    ))
}

#[cfg(test)]
mod tests {
    use super::may_own;

    #[test]
    fn only_likely_owners_are_asked_first() {
        for name in ["git__log", "mcp__git__log", "git.log"] {
            assert!(may_own("git", name), "{name}");
            assert!(!may_own("gi", name), "{name}");
        }
        // Whoever of the two it is, both are asked.
        assert!(may_own("a", "a__b__c") && may_own("a__b", "a__b__c"));
        assert!(may_own("my server", "my_server__log"));
        assert!(may_own("my server", "mcp__my server__log"));
    }
}
