//! The configured servers, opened for the duration of one command.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::Args;
use futures_util::future::join_all;
use plexus_mcp_agents::BuiltinSelection;
use plexus_mcp_client::{ClientCapabilities, Program, ServerState};
use plexus_mcp_config::{self as config, Mode, ServerEntry};
use plexus_mcp_core::{Limits, Peer, Principal, Raw, Section};
use plexus_mcp_hub::names::may_own;
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, MemberStatus, Origin};
use plexus_mcp_protocol::Revision;

use crate::ad_hoc::{ServerChoice, ServerChoiceArgs};
use crate::cli::existing_file;
use crate::extras::BuiltinArgs;
use crate::gateway::{self, Gateway, GatewayOptions};
use crate::live::StatusLine;
use crate::output::say;
use crate::signals::Signals;
use crate::suggest::{alike, did_you_mean};
use crate::tools::entries;
use crate::{announce, extras, runtime};

/// The name of the built-in member.
pub(crate) const BUILTIN: &str = "plexus";

/// Arguments that select configuration files.
#[derive(Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Use the MCP servers of this file as well, which has the format of .mcp.json.
    ///
    /// It takes precedence over all other files. This option may be repeated.
    #[arg(long, value_name = "FILE", value_parser = existing_file())]
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
    /// The only server that this command uses; `None` for all.
    pub(crate) selected: Option<String>,
    /// The servers whose failure was already printed.
    announced: Mutex<HashSet<Arc<str>>>,
}

/// Opens the servers, runs `work` with them, and closes them, also if a signal interrupts it.
pub(crate) fn run(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    run_on(opened(arguments.options()), None, work)
}

/// Opens one server or all, and runs `work` with them as [`run`] does.
pub(crate) fn run_chosen(
    arguments: &ServerChoiceArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let entry = match arguments.choice()? {
        ServerChoice::All => return run(&arguments.config, work),
        ServerChoice::Named(name) => {
            return run_on(opened(arguments.config.options()), Some(name), work);
        }
        ServerChoice::AdHoc(entry) => entry,
    };
    let selected = Some(entry.name.clone());
    let options = GatewayOptions {
        ad_hoc: Some(entry),
        ..GatewayOptions::default()
    };
    run_on(gateway::configured(options), selected, work)
}

/// The same for an agent: built-in services are offered only if they are selected, and problems of
/// files are warnings of their own (S001-60).
pub(crate) fn run_host(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let mut options = arguments.options();
    options.choice = options.choice.or_else(|| Some(BuiltinSelection::none()));
    let opened = async {
        let gateway = gateway::configured_for_agent(options).await?;
        for problem in gateway.problems() {
            say(format!("Warning: MCP config error: {problem}"));
        }
        Ok(gateway)
    };
    run_on(opened, None, work)
}

/// The gateway, after its problems are printed.
async fn opened(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let gateway = gateway::configured(options).await?;
    gateway.announce_problems_of_data().await;
    Ok(gateway)
}

/// The same as [`run`], without printing problems of the files.
pub(crate) fn run_quietly(
    arguments: &ConfigArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    run_on(gateway::configured_quietly(arguments.options()), None, work)
}

fn run_on(
    gateway: impl Future<Output = anyhow::Result<Gateway>>,
    selected: Option<String>,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    runtime::on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let opened = tokio::select! {
            opened = gateway => opened.and_then(|gateway| Session::new(gateway, selected)),
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
    fn new(gateway: Gateway, selected: Option<String>) -> anyhow::Result<Self> {
        Ok(Self {
            hub: gateway.hub.clone(),
            configured: gateway.servers(),
            gateway,
            peer: Arc::new(peer()?),
            selected,
            announced: Mutex::default(),
        })
    }

    /// Connects these servers, and prints which cannot be connected or listed.
    pub(crate) async fn connect(&self, is_wanted: impl Fn(&str) -> bool) {
        for name in self.connect_silently(is_wanted).await {
            let mut announced = self
                .announced
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = self.status(&name).as_ref().and_then(problem)
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
        let mut status_line = StatusLine::new(format!("connecting {}", waiting.join(", ")));
        // Each failure is recorded in its server's status.
        let connecting = join_all(waiting.iter().map(|name| self.hub.connect(name)));
        drop(status_line.during(connecting).await);
        waiting
    }

    /// Connects the selected server, or all.
    ///
    /// # Errors
    /// There is no such server, or it cannot be connected.
    pub(crate) async fn connect_selected(&self) -> anyhow::Result<()> {
        let Some(name) = &self.selected else {
            self.connect(|_| true).await;
            return Ok(());
        };
        self.check_server(name)?;
        self.connect(|member| member == name).await;
        match self.status(name).as_ref().and_then(failure) {
            // The reason has already been printed.
            Some(_) => bail!("the server {name:?} is not connected"),
            None => Ok(()),
        }
    }

    /// Whether this command uses the server.
    pub(crate) fn selects(&self, server: &str) -> bool {
        self.selected.as_deref().is_none_or(|name| name == server)
    }

    /// Connects the server that has this entry, and no other if possible. An entry of a selected
    /// server is also found by the server's own name for it.
    ///
    /// # Errors
    /// The selected server cannot be used.
    pub(crate) async fn find(
        &self,
        section: Section,
        name: &str,
    ) -> anyhow::Result<Option<Origin>> {
        if self.selected.is_none() {
            return Ok(self.find_anywhere(section, name).await);
        }
        self.connect_selected().await?;
        let origin = self.hub.origin(section, name);
        let origin = origin.filter(|origin| self.selects(&origin.member));
        Ok(origin.or_else(|| {
            let mut entries = entries(self, section).into_iter();
            entries.find_map(|(_, origin)| {
                let is_it = self.selects(&origin.member) && *origin.name == *name;
                is_it.then_some(origin)
            })
        }))
    }

    async fn find_anywhere(&self, section: Section, name: &str) -> Option<Origin> {
        if let Some(origin) = self.hub.origin(section, name) {
            self.connect(|member| *member == *origin.member).await;
            return self.hub.origin(section, name);
        }
        if matches!(section, Section::Tools | Section::Prompts) {
            self.connect(|member| may_own(member, name)).await;
            if let Some(origin) = self.hub.origin(section, name) {
                return Some(origin);
            }
            // The named server cannot be connected or listed, which was printed; no other server
            // has this entry.
            let members = self.hub.status();
            let mut named = members.iter().filter(|member| may_own(&member.name, name));
            if named.any(|member| problem(member).is_some()) {
                return None;
            }
        }
        // The tool belongs to a built-in service that is not offered, so no server need be started.
        if section == Section::Tools && self.gateway.left_out(name).is_some() {
            return None;
        }
        self.connect(|_| true).await;
        self.hub.origin(section, name)
    }

    /// Lets the policy allow every call from now on. The caller has found out before that it denies
    /// none of those which are made.
    pub(crate) fn agree_to_all(&self) {
        let mut everything = config::Policy::default();
        everything.mode = Mode::DangerouslySkipPermissions;
        self.hub.set_policy(Policy::behind_client(&everything));
    }

    /// The start of a sentence that names the command which lists something.
    pub(crate) fn list_with(&self, command: &str) -> String {
        match &self.selected {
            None => format!("'plexus {command}' lists"),
            Some(_) => format!("'plexus {command}' with the same --server lists"),
        }
    }

    /// The status of a server.
    pub(crate) fn status(&self, name: &str) -> Option<MemberStatus> {
        self.hub.server_status(name).ok()
    }

    /// The configuration of a server.
    pub(crate) fn configured(&self, name: &str) -> Option<&ServerEntry> {
        self.configured.iter().find(|server| server.name == name)
    }

    /// Why the tools of a configured server are not known, if so.
    pub(crate) fn absence(&self, server: &ServerEntry) -> Option<String> {
        if server.disabled {
            return Some(disabled(server));
        }
        let status = self.status(&server.name)?;
        let unlisted = status.list_problem(Section::Tools);
        failure(&status).or_else(|| unlisted.map(ToString::to_string))
    }

    /// The servers that are disabled, of those that this command uses.
    pub(crate) fn disabled(&self) -> Vec<&ServerEntry> {
        let servers = self.configured.iter();
        let disabled = servers.filter(|server| server.disabled && self.selects(&server.name));
        disabled.collect()
    }

    /// The addition to an error about an unknown tool or prompt: the server that may have it is
    /// disabled.
    pub(crate) fn disabled_owner(&self, name: &str) -> Option<String> {
        let mut servers = self.disabled().into_iter();
        let owner = servers.find(|server| may_own(&server.name, name))?;
        Some(format!("the server {:?}: {}", owner.name, disabled(owner)))
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
                "there is no server {name:?}{hint}\n\n  tip: 'plexus mcp list' lists all servers; \
                 any other is named by its URL or command"
            );
        };
        if server.disabled {
            bail!("the server {name:?} cannot be used: {}", disabled(server));
        }
        Ok(())
    }
}

/// Why a server is not used that its definition disables, and how to enable it.
pub(crate) fn disabled(server: &ServerEntry) -> String {
    let command = ["servers", "toggle", server.name.as_str(), "--on", "--save"];
    let command = Program::new("plexus").args(command);
    let file = server.source.file.display();
    format!("it is disabled in {file}; to enable it: {command}")
}

/// Why an enabled server is not connected.
pub(crate) fn failure(member: &MemberStatus) -> Option<String> {
    let status = member.status.as_ref()?;
    match status.state {
        ServerState::Failed | ServerState::NeedsAuth => {
            let reason = status.reason.as_deref().unwrap_or(status.state.as_str());
            Some(reason.to_owned())
        }
        // It waits for an action of the user, such as an approval.
        ServerState::Pending => status.reason.clone(),
        _ => None,
    }
}

/// Why an enabled server does not offer everything that it has: it is not connected, or its lists
/// have problems.
pub(crate) fn problem(member: &MemberStatus) -> Option<String> {
    let has_list_problems = member.state() == ServerState::Connected;
    let list_problems = member.reason().filter(|_| has_list_problems);
    failure(member).or_else(|| list_problems.map(str::to_owned))
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
