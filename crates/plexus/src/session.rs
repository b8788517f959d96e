//! The configured servers, for one command: opened, asked and left again.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::Args;
use futures_util::future::join_all;
use plexus_client::{ClientCapabilities, State};
use plexus_hub::config::ServerEntry;
use plexus_hub::names::Names;
use plexus_hub::{Hub, MemberStatus, Origin};
use plexus_mcp::Revision;
use plexus_service::{Limits, Peer, Principal, Raw, Section};

use crate::extras::BuiltinArgs;
use crate::gateway::{self, Gateway, Opening};
use crate::live::Live;
use crate::output::harmless;
use crate::signals::Signals;
use crate::suggest::{alike, did_you_mean};
use crate::{announce, extras, runtime};

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

    #[command(flatten)]
    builtin: BuiltinArgs,
}

impl ConfigArgs {
    fn opening(&self) -> Opening {
        Opening {
            files: self.mcp_config.clone(),
            extras: extras::all(None),
            choice: self.builtin.choice(),
            ..Opening::default()
        }
    }
}

/// The servers, each connected when it is needed.
pub(crate) struct Session {
    pub(crate) gateway: Gateway,
    pub(crate) hub: Hub,
    /// Every server that is configured, used or not.
    pub(crate) configured: Vec<ServerEntry>,
    pub(crate) peer: Arc<Peer>,
    /// The servers of which was said why they are not connected.
    announced: Mutex<HashSet<Arc<str>>>,
}

/// Opens the servers, does `work` with them, and leaves them, also if a signal ends it before.
pub(crate) fn run(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let opening = async {
        let gateway = gateway::configured(arguments.opening()).await?;
        gateway.announce_problems_of_data().await;
        Ok(gateway)
    };
    run_on(opening, work)
}

/// The same, without saying what is wrong with the files.
pub(crate) fn run_quietly(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    run_on(gateway::configured_quietly(arguments.opening()), work)
}

fn run_on(
    opening: impl Future<Output = anyhow::Result<Gateway>>,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    runtime::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let opened = tokio::select! {
            opened = opening => opened.and_then(Session::new),
            signal = signals.next() => return Ok(signal.exit_code()),
        };
        let session = opened?;
        // A call that is dropped here is cancelled at its server.
        let ended = tokio::select! {
            ended = work(&session) => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        };
        tokio::select! {
            () = session.gateway.close() => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        }
    })
}

impl Session {
    fn new(gateway: Gateway) -> anyhow::Result<Self> {
        Ok(Self {
            hub: gateway.hub.clone(),
            configured: gateway.servers(),
            gateway,
            peer: Arc::new(peer()?),
            announced: Mutex::default(),
        })
    }

    /// Connects these servers, and says which cannot be.
    pub(crate) async fn connect(&self, is_wanted: impl Fn(&str) -> bool) {
        for name in self.connect_silently(is_wanted).await {
            let mut announced = self
                .announced
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = self.status(&name).as_ref().and_then(failure)
                && announced.insert(Arc::clone(&name))
            {
                announce::problem(&format!("{name}: {reason}"));
            }
        }
    }

    /// Connects these servers, and gives those that were not connected before.
    pub(crate) async fn connect_silently(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let members = self.hub.status().into_iter();
        let waiting = members.filter(|member| member.state() == State::Pending);
        let waiting: Vec<_> = waiting
            .map(|member| member.name)
            .filter(|name| is_wanted(name))
            .collect();
        if waiting.is_empty() {
            return waiting;
        }
        let mut live = Live::new(format!("connecting {}", waiting.join(", ")));
        // Each failure is its server's status.
        let connecting = join_all(waiting.iter().map(|name| self.hub.connect(name)));
        drop(live.during(connecting).await);
        waiting
    }

    /// Connects every server.
    pub(crate) async fn connect_all(&self) {
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
        // It is known whose it is, and that it is not offered: nobody else need be started.
        if section == Section::Tools && self.gateway.left_out(name).is_some() {
            return None;
        }
        self.connect_all().await;
        self.hub.origin(section, name)
    }

    /// How a server is doing.
    pub(crate) fn status(&self, name: &str) -> Option<MemberStatus> {
        self.hub.status_of(name).ok()
    }

    /// Where a server is configured.
    pub(crate) fn configured(&self, name: &str) -> Option<&ServerEntry> {
        self.configured.iter().find(|server| server.name == name)
    }

    /// Why a configured server offers nothing, if it does not.
    pub(crate) fn absence(&self, server: &ServerEntry) -> Option<String> {
        if server.disabled {
            return Some(format!(
                "it is disabled in {}",
                server.source.file.display()
            ));
        }
        failure(&self.status(&server.name)?)
    }

    /// Checks that there is a server of this name.
    ///
    /// # Errors
    /// There is none, or it is turned off.
    pub(crate) fn check_server(&self, name: &str) -> anyhow::Result<()> {
        if name == BUILTIN {
            return Ok(());
        }
        let Some(server) = self.configured(name) else {
            let names = self.configured.iter().map(|server| server.name.as_str());
            let hint = did_you_mean(&alike(name, names));
            bail!(
                "there is no server {name:?}{hint}\n\n  tip: 'plexus mcp list' lists those that there are"
            );
        };
        if server.disabled {
            let file = server.source.file.display();
            bail!("the server {name:?} is disabled in {file}");
        }
        Ok(())
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
        // It waits for something that we cannot do, as for its user's approval.
        State::Pending => status.reason.as_deref().map(harmless),
        _ => None,
    }
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
