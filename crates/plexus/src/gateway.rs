//! The gateway: the built-in tools and the configured servers, as one service.

mod builtin;
mod call_log;
mod failures;
mod fixed_catalogue;
mod members;
mod report;

use std::collections::HashSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use plexus_mcp_agents::{Builtin, BuiltinSelection, Extras};
use plexus_mcp_client::ServerState;
use plexus_mcp_config::{
    self as config, ConfigProblem, Kind, Limits, Loaded, Locations, Scope, ServerEntry, Settings,
    Start, WatchError, Watcher,
};
use plexus_mcp_core::Service;
use plexus_mcp_hub::catalogue_cache::CatalogueCache;
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, MemberStatus, SetMembers, manage};

pub(crate) use members::{refuse_reserved, refused};
pub(crate) use report::ServerReport;

use builtin::Builtins;

use crate::auth::SignInCallbacks;
use crate::cli::Profile;
use crate::process_env::{environment, locations};
use crate::serve_chain::ServeChain;
use crate::trust::{self, Approvals, NOT_TRUSTED};
use crate::{announce, data, health};

/// The key of the settings for clients without settings of their own.
const ANY_CLIENT: &str = "*";

/// The hub of all configured servers, and the configuration that it was made from.
pub(crate) struct Gateway {
    /// The service.
    pub(crate) hub: Hub,
    builtins: Builtins,
    /// The selected built-in services, which override the settings.
    choice: Option<BuiltinSelection>,
    /// Built-in services to add to the selection.
    also: Vec<Builtin>,
    /// Every client searches for tools, whatever the settings say.
    tool_search: bool,
    /// The only server, if it is in no file.
    ad_hoc: Option<Box<ServerEntry>>,
    profile: Profile,
    locations: Locations,
    data: PathBuf,
    /// Listeners for sign-in redirects, if callers are offered sign-in pages.
    callbacks: Option<SignInCallbacks>,
    /// The limits that the settings had when the gateway was opened.
    limits: Arc<Limits>,
    /// The gateways that this process and the programs it starts were started by.
    chain: ServeChain,
    /// The configuration that was loaded last.
    current: Mutex<LoadedConfig>,
    /// Serializes applying the configuration.
    applying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct LoadedConfig {
    /// Whether any configuration was applied.
    is_applied: bool,
    servers: Vec<ServerEntry>,
    problems: Vec<ConfigProblem>,
    settings: Settings,
}

/// Options of a gateway that are not in the configuration files.
#[derive(Default)]
pub(crate) struct GatewayOptions {
    /// The profile.
    pub(crate) profile: Profile,
    /// Additional files with servers.
    pub(crate) files: Vec<PathBuf>,
    /// Built-in services that are not offered to all callers.
    pub(crate) extras: Extras,
    /// The selected built-in services; `None` for the selection in the settings.
    pub(crate) choice: Option<BuiltinSelection>,
    /// Built-in services to add to the selection.
    pub(crate) also: Vec<Builtin>,
    /// Every client searches for tools, even if the settings do not say so.
    pub(crate) tool_search: bool,
    /// Listeners for sign-in redirects, if callers are offered sign-in pages.
    pub(crate) callbacks: Option<SignInCallbacks>,
    /// A server that is in no file. The others and the built-in services are not used then.
    pub(crate) ad_hoc: Option<Box<ServerEntry>>,
}

/// Opens the hub of all servers that are configured for the current directory and user, of those in
/// additional files, and of the built-in tools. No server is connected yet: see [`Gateway::start`]
/// and the methods of [`Hub`]. Problems of a file or a server are printed on standard error, and do
/// not affect the others.
///
/// # Errors
/// There is no data directory, or a settings file cannot be used: it may deny anything.
pub(crate) async fn configured(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(options)?;
    usable_settings(&loaded.problems)?;
    gateway.apply(loaded).await;
    Ok(gateway)
}

/// Checks that every settings file can be used.
///
/// # Errors
/// The problem of one that cannot be used.
pub(crate) fn usable_settings(problems: &[ConfigProblem]) -> anyhow::Result<()> {
    let mut problems = problems.iter();
    match problems.find(|problem| problem.is_about_settings()) {
        Some(problem) => bail!(
            "{problem}\n\n  tip: correct the file, or move it away; Plexus does not start without \
             the rules in it"
        ),
        None => Ok(()),
    }
}

/// The same, for commands that report problems of the files themselves.
///
/// # Errors
/// There is no data directory.
pub(crate) async fn configured_quietly(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(options)?;
    gateway.current().problems.clone_from(&loaded.problems);
    gateway.apply(loaded).await;
    Ok(gateway)
}

impl Gateway {
    /// The gateway, and the loaded configuration.
    fn open(options: GatewayOptions) -> anyhow::Result<(Self, Loaded)> {
        let GatewayOptions {
            profile,
            files,
            mut extras,
            choice,
            also,
            tool_search,
            callbacks,
            ad_hoc,
        } = options;
        let mut locations = locations()?;
        let absolute = |file| std::path::absolute(&file).unwrap_or(file);
        locations.explicit = files.into_iter().map(absolute).collect();
        let choice = match &ad_hoc {
            Some(_) => Some(BuiltinSelection::none()),
            None => choice,
        };
        let mut loaded = load(&locations, ad_hoc.as_deref());
        if profile == Profile::Plexus {
            let selection = selected_builtins(choice.as_ref(), &mut loaded, &locations);
            extras.choice = Some(selection.with(&also));
        }
        let memory = data::when_needed()?;
        let servers = extras.servers.clone();
        let builtins = Builtins::new(profile, memory, extras)?;
        let data = data::directory()?;
        let identity = builtins.service().catalogue().borrow().identity.clone();
        let hub = if ad_hoc.is_some() {
            Hub::new(identity)
        } else {
            let cache = CatalogueCache::in_directory(data.join("catalogues"));
            Hub::with_cache(identity, cache)
        };
        hub.keep_consents_in(data.join("consents"));
        let reported = hub.clone();
        servers.report_by(move || health::report(&reported));
        let gateway = Self {
            hub,
            builtins,
            choice,
            also,
            tool_search,
            ad_hoc,
            profile,
            locations,
            data,
            callbacks,
            limits: Arc::new(loaded.settings.limits.clone()),
            chain: ServeChain::of_process(),
            current: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
        };
        Ok((gateway, loaded))
    }

    /// The service for clients: the hub, or the fixed catalogue of a closed profile if no servers
    /// were named.
    pub(crate) fn service(&self) -> Arc<dyn Service> {
        let hub = self.hub.clone();
        if self.profile.is_closed() && self.locations.explicit.is_empty() {
            Arc::new(fixed_catalogue::FixedCatalogue::new(
                hub,
                self.builtins.service(),
            ))
        } else {
            Arc::new(hub)
        }
    }

    /// Notifies subscribers of changes by other processes, for as long as it is polled.
    pub(crate) fn follow_data(&self) -> impl Future<Output = Infallible> + Send + use<> {
        self.builtins.follow()
    }

    /// Prints a warning for each database that cannot be used.
    pub(crate) async fn announce_problems_of_data(&self) {
        data::announce_problems(self.builtins.data()).await;
    }

    /// Checks that no gateway above this one uses the same configuration.
    ///
    /// # Errors
    /// This gateway would start itself in a loop.
    pub(crate) fn check_chain(&self) -> anyhow::Result<()> {
        self.chain.check(&self.locations)
    }

    /// The project directory.
    pub(crate) fn project(&self) -> &Path {
        &self.locations.project_dir
    }

    /// The configured servers, in the order of precedence.
    pub(crate) fn servers(&self) -> Vec<ServerEntry> {
        self.current().servers.clone()
    }

    /// The problems of the files, one line each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let current = self.current();
        current.problems.iter().map(ToString::to_string).collect()
    }

    /// The servers that are defined but not among the members, because their definitions or names
    /// cannot be used, each with the problem.
    fn refused(&self) -> Vec<(String, ConfigProblem)> {
        let members = self.hub.status();
        let current = self.current();
        let refused = members::refused(&current.problems, &current.servers);
        refused
            .into_iter()
            .filter(|problem| {
                let name = problem.server.as_deref().unwrap_or_default();
                !members
                    .iter()
                    .any(|member| *member.name == *name && member.status.is_some())
            })
            .map(|problem| {
                let name = problem.server.as_deref().unwrap_or_default();
                (name.to_owned(), problem.clone())
            })
            .collect()
    }

    /// Tells clients how many servers are not available.
    fn update_notice(&self) {
        let members = self.hub.status();
        let failed = members
            .iter()
            .filter(|member| is_unavailable(member))
            .count();
        let broken = self
            .current()
            .problems
            .iter()
            .any(ConfigProblem::is_about_settings);
        let mut notices = Vec::new();
        match failed + self.refused().len() {
            0 => {}
            1 => notices.push("1 server is not available: run `plexus status`.".to_owned()),
            many => notices.push(format!(
                "{many} servers are not available: run `plexus status`."
            )),
        }
        if broken {
            notices.push(
                "A plexus.toml has an error, so the settings from before it apply: run `plexus \
                 doctor`."
                    .to_owned(),
            );
        }
        let notice = (!notices.is_empty()).then(|| notices.join(" "));
        self.hub.set_notice(notice);
    }

    /// Whether a definition of a server, or a file with servers, is invalid.
    pub(crate) fn has_invalid_servers(&self) -> bool {
        has_invalid_servers(&self.current().problems, &self.locations)
    }

    /// The permission policy of the settings.
    pub(crate) fn policy(&self) -> config::Policy {
        self.current().settings.policy.clone()
    }

    /// The number of entries in one page of a list, if the settings have it.
    pub(crate) fn page_size(&self) -> Option<NonZeroUsize> {
        self.current().settings.hub.page_size
    }

    /// The limits of the settings, as they were at the start.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The built-in service that has a tool of this name, if it is not offered.
    pub(crate) fn left_out(&self, tool: &str) -> Option<Builtin> {
        self.builtins.left_out(tool)
    }

    /// Starts to connect the servers whose offer is unknown. Lists wait for them for a while; tools
    /// of a server that is connected later are announced.
    pub(crate) fn start(&self) {
        self.hub.connect_unknown_in_background();
    }

    /// Loads the files again, and applies the changes. Unchanged servers are not touched.
    pub(crate) async fn reload(&self) -> SetMembers {
        let (locations, ad_hoc) = (self.locations.clone(), self.ad_hoc.clone());
        let reading = tokio::task::spawn_blocking(move || load(&locations, ad_hoc.as_deref()));
        match reading.await {
            Ok(loaded) => {
                let changes = self.refresh(loaded).await;
                self.connect();
                changes
            }
            // The runtime is shutting down.
            Err(_) => SetMembers::default(),
        }
    }

    /// Watches the files and applies changes, for as long as it is polled.
    ///
    /// # Errors
    /// The system cannot watch files.
    pub(crate) async fn follow_files(&self) -> Result<Infallible, WatchError> {
        let environment = Arc::new(environment);
        let (loaded, mut watcher) = Watcher::start(self.locations.clone(), environment).await?;
        // The files may have changed since they were first read.
        if !self.refresh(loaded).await.is_nothing() {
            self.connect();
        }
        #[expect(
            clippy::infinite_loop,
            reason = "the caller drops the future to end it"
        )]
        loop {
            let loaded = watcher.changed().await;
            self.refresh(loaded).await;
            self.connect();
        }
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.hub.close().await;
    }

    async fn refresh(&self, loaded: Loaded) -> SetMembers {
        let changes = self.apply(loaded).await;
        if !changes.is_nothing() {
            let SetMembers {
                added,
                removed,
                updated,
                errors,
                ..
            } = &changes;
            tracing::info!(
                ?added,
                ?removed,
                ?updated,
                ?errors,
                "the configured servers changed"
            );
        }
        changes
    }

    /// Starts to connect the servers that the settings select. Servers whose offer is cached are not
    /// waited for by any list.
    pub(crate) fn connect(&self) {
        let start = self.current().settings.hub.start;
        match start {
            Start::Eager => self.hub.connect_in_background(),
            Start::Lazy => self.hub.connect_unknown_in_background(),
        }
    }

    /// Applies the configuration to the hub.
    async fn apply(&self, mut loaded: Loaded) -> SetMembers {
        let _one_at_a_time = self.applying.lock().await;
        if self.profile.is_closed() {
            let named = |entry: &ServerEntry| entry.source.scope == Scope::Explicit;
            loaded.servers.retain(named);
        }
        self.keep_servers_of_broken_files(&mut loaded);
        self.keep_settings_of_broken_files(&mut loaded);
        let approvals = Approvals::read(&self.data).unwrap_or_else(|error| {
            announce::problem(&format!("{error:#}"));
            Approvals::none(&self.data)
        });
        trust::rules::apply(&approvals, self.project(), &mut loaded);
        refuse_reserved(&mut loaded);
        let choice = selected_builtins(self.choice.as_ref(), &mut loaded, &self.locations);
        if let Err(error) = self.builtins.choose(choice.with(&self.also)) {
            announce::problem(&error);
        }
        let mut members = vec![self.builtins.member()];
        let chain = self.chain.below(&self.locations);
        let mut trusted = Vec::new();
        for entry in &loaded.servers {
            let admitted = approvals.admit(self.project(), entry);
            let startup_wait = loaded.settings.hub.startup_wait;
            let callbacks = self.callbacks.as_ref();
            let limits = &self.limits;
            members.extend(members::configured(
                entry,
                admitted,
                callbacks,
                startup_wait,
                limits,
                &chain,
            ));
            trusted.extend(entry.trusted.then(|| entry.name.clone()));
        }
        members.extend(members::broken(&loaded));
        let policy = Policy::behind_client(&loaded.settings.policy).trusting(trusted);
        self.hub.set_policy(policy);
        let mut clients = loaded.settings.clients.clone();
        if self.tool_search {
            clients.entry(ANY_CLIENT.to_owned()).or_default();
            for client in clients.values_mut() {
                client.search = true;
            }
        }
        self.hub.set_clients(clients);
        if self.ad_hoc.is_some() {
            for member in &mut members {
                member.plain_names = true;
            }
        } else if loaded.settings.hub.management && members.len() > 1 {
            match manage::member(&self.hub) {
                Ok(management) => members.insert(1, management),
                Err(error) => announce::problem(&error),
            }
        }
        let mut changes = self.hub.set_members(members).await;
        for problem in &loaded.problems {
            if let Some(server) = &problem.server {
                changes
                    .errors
                    .insert(server.to_string(), problem.to_string());
            }
        }
        self.note(loaded);
        self.update_notice();
        changes
    }

    /// Keeps the settings while a file with settings cannot be used, for example after a typing
    /// error: it may deny anything.
    fn keep_settings_of_broken_files(&self, loaded: &mut Loaded) {
        let current = self.current();
        if !current.is_applied {
            return;
        }
        let mut is_broken = false;
        for problem in &mut loaded.problems {
            if problem.is_about_settings() {
                is_broken = true;
                *problem = problem
                    .clone()
                    .advice("until then, the settings from before apply");
            }
        }
        if is_broken {
            loaded.settings = current.settings.clone();
        }
    }

    /// Keeps the servers of a file that can no longer be parsed, for example after a typing error,
    /// until it can be parsed again.
    fn keep_servers_of_broken_files(&self, loaded: &mut Loaded) {
        let broken = |file: &Path| {
            let mut problems = loaded.problems.iter();
            problems.any(|problem| problem.is_about_whole_file() && problem.file == file)
        };
        let taken: HashSet<_> = loaded
            .servers
            .iter()
            .map(|entry| entry.name.to_lowercase())
            .collect();
        let mut kept = self.servers();
        kept.retain(|entry| {
            broken(&entry.source.file) && !taken.contains(&entry.name.to_lowercase())
        });
        if kept.is_empty() {
            return;
        }
        let sources = self.locations.sources();
        let rank = |entry: &ServerEntry| sources.iter().position(|source| *source == entry.source);
        loaded.servers.extend(kept);
        loaded.servers.sort_by_key(rank);
    }

    /// Stores the loaded configuration, and prints its new problems.
    fn note(&self, loaded: Loaded) {
        let problems = loaded.problems.clone();
        let now = LoadedConfig {
            is_applied: true,
            servers: loaded.servers,
            problems: loaded.problems,
            settings: loaded.settings,
        };
        let before = std::mem::replace(&mut *self.current(), now);
        for problem in problems {
            if !before.problems.contains(&problem) {
                announce::problem(&problem);
            }
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, LoadedConfig> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the files; of those, only the settings count for a server that is in no file.
fn load(locations: &Locations, ad_hoc: Option<&ServerEntry>) -> Loaded {
    let Some(entry) = ad_hoc else {
        return config::load(locations, &environment);
    };
    let (settings, problems) = config::load_settings(locations);
    let mut loaded = Loaded::default();
    loaded.settings = settings;
    loaded.problems = problems;
    loaded.servers.push(entry.clone());
    loaded
}

/// Whether a definition of a server, or a file with servers, is invalid.
fn has_invalid_servers(problems: &[ConfigProblem], locations: &Locations) -> bool {
    let sources = locations.sources();
    problems.iter().any(|problem| {
        let is_in_servers_file = || sources.iter().any(|source| source.file == problem.file);
        !problem.is_about_permissions() && (problem.server.is_some() || is_in_servers_file())
    })
}

/// The selected built-in services: those of the command line, else of the settings; else, if no
/// server is configured, the default ones. An invalid selection in the settings is added to the
/// problems.
fn selected_builtins(
    asked: Option<&BuiltinSelection>,
    loaded: &mut Loaded,
    locations: &Locations,
) -> BuiltinSelection {
    if let Some(choice) = asked {
        return choice.clone();
    }
    match loaded.settings.hub.builtin.as_ref().map(builtin::chosen) {
        Some(Ok(choice)) => return choice,
        Some(Err(problem)) if !loaded.problems.contains(&problem) => loaded.problems.push(problem),
        Some(Err(_)) | None => {}
    }
    // A server that is disabled or invalid is configured as well: the built-in services must not
    // appear whenever a definition breaks.
    let is_upstream = |entry: &ServerEntry| !matches!(entry.kind, Kind::Builtin(_));
    let has_servers =
        loaded.servers.iter().any(is_upstream) || has_invalid_servers(&loaded.problems, locations);
    if has_servers {
        BuiltinSelection::none()
    } else {
        BuiltinSelection::usual()
    }
}

/// Whether an enabled server cannot be used: it has failed, or waits for the user.
fn is_unavailable(member: &MemberStatus) -> bool {
    match member.state() {
        ServerState::Failed | ServerState::NeedsAuth => true,
        ServerState::Pending => member.reason() == Some(NOT_TRUSTED),
        _ => false,
    }
}
