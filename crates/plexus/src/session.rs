//! The configured servers, opened for the duration of one command.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::Args;
use futures_util::future::join_all;
use plexus_mcp_client::{ClientCapabilities, ServerState};
use plexus_mcp_config::ServerEntry;
use plexus_mcp_core::{Limits, Peer, Principal, Raw, Section};
use plexus_mcp_hub::names::may_own;
use plexus_mcp_hub::{Hub, MemberStatus, Origin};
use plexus_mcp_protocol::Revision;

use crate::extras::BuiltinArgs;
use crate::gateway::{self, Gateway, GatewayOptions};
use crate::live::Live;
use crate::output::harmless;
use crate::signals::Signals;
use crate::suggest::{alike, did_you_mean};
use crate::{announce, extras, runtime};

/// The name of the built-in member.
pub(crate) const BUILTIN: &str = "plexus";

/// Arguments that select configuration files.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Use the MCP servers of this file as well, which has the format of .mcp.json.
    ///
    /// It takes precedence over all other files. This option may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    #[command(flatten)]
    builtin: BuiltinArgs,
}

impl ConfigArgs {
    fn options(&self) -> GatewayOptions {
        GatewayOptions {
            files: self.mcp_config.clone(),
            extras: extras::all(None),
            choice: self.builtin.choice(),
            ..GatewayOptions::default()
        }
    }
}

/// The servers, each connected when it is needed.
pub(crate) struct Session {
    pub(crate) gateway: Gateway,
    pub(crate) hub: Hub,
    /// Every configured server, used or not.
    pub(crate) configured: Vec<ServerEntry>,
    pub(crate) peer: Arc<Peer>,
    /// The servers whose failure was already printed.
    announced: Mutex<HashSet<Arc<str>>>,
}

/// Opens the servers, runs `work` with them, and closes them, also if a signal interrupts it.
pub(crate) fn run(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let options = async {
        let gateway = gateway::configured(arguments.options()).await?;
        gateway.announce_problems_of_data().await;
        Ok(gateway)
    };
    run_on(options, work)
}

/// The same, without printing problems of the files.
pub(crate) fn run_quietly(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    run_on(gateway::configured_quietly(arguments.options()), work)
}

fn run_on(
    options: impl Future<Output = anyhow::Result<Gateway>>,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    runtime::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let opened = tokio::select! {
            opened = options => opened.and_then(Session::new),
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

    /// Connects these servers, and prints which cannot be connected.
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

    /// Connects these servers, and returns those that were not connected before.
    pub(crate) async fn connect_silently(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let members = self.hub.status().into_iter();
        let waiting = members.filter(|member| member.state() == ServerState::Pending);
        let waiting: Vec<_> = waiting
            .map(|member| member.name)
            .filter(|name| is_wanted(name))
            .collect();
        if waiting.is_empty() {
            return waiting;
        }
        let mut live = Live::new(format!("connecting {}", waiting.join(", ")));
        // Each failure is recorded in its server's status.
        let connecting = join_all(waiting.iter().map(|name| self.hub.connect(name)));
        drop(live.during(connecting).await);
        waiting
    }

    /// Connects every server.
    pub(crate) async fn connect_all(&self) {
        self.connect(|_| true).await;
    }

    /// Connects the server that has this entry, and no other if possible.
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
            // The named server cannot be connected, which was printed; no other server has this
            // entry.
            let members = self.hub.status();
            let mut named = members.iter().filter(|member| may_own(&member.name, name));
            if named.any(|member| failure(member).is_some()) {
                return None;
            }
        }
        // The tool belongs to a built-in service that is not offered, so no server need be started.
        if section == Section::Tools && self.gateway.left_out(name).is_some() {
            return None;
        }
        self.connect_all().await;
        self.hub.origin(section, name)
    }

    /// The status of a server.
    pub(crate) fn status(&self, name: &str) -> Option<MemberStatus> {
        self.hub.server_status(name).ok()
    }

    /// The configuration of a server.
    pub(crate) fn configured(&self, name: &str) -> Option<&ServerEntry> {
        self.configured.iter().find(|server| server.name == name)
    }

    /// Why a configured server offers nothing, if so.
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
    /// There is none, or it is disabled.
    pub(crate) fn check_server(&self, name: &str) -> anyhow::Result<()> {
        if name == BUILTIN {
            return Ok(());
        }
        let Some(server) = self.configured(name) else {
            let names = self.configured.iter().map(|server| server.name.as_str());
            let hint = did_you_mean(&alike(name, names));
            bail!(
                "there is no server {name:?}{hint}\n\n  tip: 'plexus mcp list' lists all servers"
            );
        };
        if server.disabled {
            let file = server.source.file.display();
            bail!("the server {name:?} is disabled in {file}");
        }
        Ok(())
    }
}

/// Why an enabled server is not connected.
pub(crate) fn failure(member: &MemberStatus) -> Option<String> {
    let status = member.status.as_ref()?;
    match status.state {
        ServerState::Failed | ServerState::NeedsAuth => {
            let reason = status.reason.as_deref().unwrap_or(status.state.as_str());
            Some(harmless(reason))
        }
        // It waits for an action of the user, such as an approval.
        ServerState::Pending => status.reason.as_deref().map(harmless),
        _ => None,
    }
}

/// Our peer for the servers: a user who can answer questions, without a model.
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
