//! The gateway: the built-in tools and the configured servers, as one service.

mod builtin;
mod fixed_catalogue;
mod members;
mod report;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_mcp_agents::{Builtin, Choice, Extras};
use plexus_mcp_client::{ServerState, Status};
use plexus_mcp_config::{
    self as config, Limits, Loaded, Locations, Scope, ServerEntry, Settings, Start, WatchError,
    Watcher,
};
use plexus_mcp_core::Service;
use plexus_mcp_hub::catalogue_cache::CatalogueCache;
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, HubEvent, SetMembers, manage};
use tokio::sync::broadcast::error::RecvError;

pub(crate) use report::ServerReport;

use builtin::Builtins;

use crate::auth::SignInCallbacks;
use crate::cli::Profile;
use crate::process_env::{environment, locations};
use crate::trust::Approvals;
use crate::{announce, data, health};

/// Delay before files are watched and servers with a known offer are connected, so that the first
/// requests are answered faster.
const WATCH_AND_CONNECT_DELAY: Duration = Duration::from_millis(300);

/// The key of the settings for clients without settings of their own.
const ANY_CLIENT: &str = "*";

/// The hub of all configured servers, and the configuration that it was made from.
pub(crate) struct Gateway {
    /// The service.
    pub(crate) hub: Hub,
    builtins: Builtins,
    /// The selected built-in services, which override the settings.
    choice: Option<Choice>,
    /// Built-in services to add to the selection.
    also: Vec<Builtin>,
    /// Every client searches for tools, whatever the settings say.
    tool_search: bool,
    profile: Profile,
    locations: Locations,
    data: PathBuf,
    /// Listeners for sign-in redirects, if callers are offered sign-in pages.
    callbacks: Option<SignInCallbacks>,
    /// The limits that the settings had when the gateway was opened.
    limits: Arc<Limits>,
    /// The configuration that was loaded last.
    current: Mutex<LoadedConfig>,
    /// Serializes applying the configuration.
    applying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct LoadedConfig {
    servers: Vec<ServerEntry>,
    problems: Vec<String>,
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
    pub(crate) choice: Option<Choice>,
    /// Built-in services to add to the selection.
    pub(crate) also: Vec<Builtin>,
    /// Every client searches for tools, even if the settings do not say so.
    pub(crate) tool_search: bool,
    /// Listeners for sign-in redirects, if callers are offered sign-in pages.
    pub(crate) callbacks: Option<SignInCallbacks>,
}

/// Opens the hub of all servers that are configured for the current directory and user, of those in
/// additional files, and of the built-in tools. No server is connected yet: see [`Gateway::start`]
/// and the methods of [`Hub`]. Problems of a file or a server are printed on standard error, and do
/// not affect the others.
///
/// # Errors
/// There is no data directory.
pub(crate) async fn configured(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(options)?;
    gateway.apply(loaded).await;
    Ok(gateway)
}

/// The same, for commands that report problems of the files themselves.
///
/// # Errors
/// As above.
pub(crate) async fn configured_quietly(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(options)?;
    gateway.current().problems = loaded.problems.iter().map(ToString::to_string).collect();
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
        } = options;
        let mut locations = locations()?;
        let absolute = |file| std::path::absolute(&file).unwrap_or(file);
        locations.explicit = files.into_iter().map(absolute).collect();
        let mut loaded = config::load(&locations, &environment);
        if profile == Profile::Plexus {
            extras.choice = Some(settled(choice.as_ref(), &mut loaded).with(&also));
        }
        let memory = data::when_needed()?;
        let servers = extras.servers.clone();
        let builtins = Builtins::new(profile, memory, extras)?;
        let data = data::directory()?;
        let cache = CatalogueCache::in_directory(data.join("catalogues"));
        let identity = builtins.service().catalogue().borrow().identity.clone();
        let hub = Hub::with_cache(identity, cache);
        hub.keep_consents_in(data.join("consents"));
        let reported = hub.clone();
        servers.report_by(move || health::report(&reported));
        let gateway = Self {
            hub,
            builtins,
            choice,
            also,
            tool_search,
            profile,
            locations,
            data,
            callbacks,
            limits: Arc::new(loaded.settings.limits.clone()),
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
        self.current().problems.clone()
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

    /// Connects the other servers if the settings say so. Their offer is known from the cache, so
    /// no request waits for them.
    pub(crate) async fn connect_the_others(&self) {
        // Answer the first requests first.
        tokio::time::sleep(WATCH_AND_CONNECT_DELAY).await;
        self.connect();
    }

    /// Loads the files again, and applies the changes. Unchanged servers are not touched.
    pub(crate) async fn reload(&self) -> SetMembers {
        let locations = self.locations.clone();
        let reading = tokio::task::spawn_blocking(move || config::load(&locations, &environment));
        match reading.await {
            Ok(loaded) => self.refresh(loaded).await,
            // The runtime is shutting down.
            Err(_) => SetMembers::default(),
        }
    }

    /// Watches the files and applies changes, for as long as it is polled.
    ///
    /// # Errors
    /// The system cannot watch files.
    pub(crate) async fn follow_files(&self) -> Result<Infallible, WatchError> {
        // Answer the first requests first.
        tokio::time::sleep(WATCH_AND_CONNECT_DELAY).await;
        let environment = Arc::new(environment);
        let (loaded, mut watcher) = Watcher::start(self.locations.clone(), environment).await?;
        // The files may have changed since they were first read.
        self.refresh(loaded).await;
        #[expect(
            clippy::infinite_loop,
            reason = "the caller drops the future to end it"
        )]
        loop {
            let loaded = watcher.changed().await;
            self.refresh(loaded).await;
        }
    }

    /// Prints a warning when a server cannot be connected or is lost, for as long as it is polled
    /// (S001-41, S001-61).
    pub(crate) async fn announce_failures(&self) {
        let mut events = self.hub.events();
        let mut told: HashMap<Arc<str>, String> = HashMap::new();
        // Some servers may have failed before the subscription.
        for member in self.hub.status() {
            if let Some(status) = &member.status {
                tell_failure(&mut told, &member.name, status);
            }
        }
        loop {
            match events.recv().await {
                Ok(HubEvent::Status {
                    name,
                    status: Some(status),
                    enabled: true,
                }) => tell_failure(&mut told, &name, &status),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.hub.close().await;
    }

    async fn refresh(&self, loaded: Loaded) -> SetMembers {
        let changes = self.apply(loaded).await;
        self.connect();
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

    fn connect(&self) {
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
        let approvals = Approvals::read(&self.data).unwrap_or_else(|error| {
            announce::problem(&format!("{error:#}"));
            Approvals::none(&self.data)
        });
        members::refuse_reserved(&mut loaded);
        let choice = settled(self.choice.as_ref(), &mut loaded).with(&self.also);
        if let Err(error) = self.builtins.choose(choice) {
            announce::problem(&error);
        }
        let mut members = vec![self.builtins.member()];
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
            ));
            trusted.extend(entry.trusted.then(|| entry.name.clone()));
        }
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
        if members.len() > 1 {
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
        changes
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
        let problems = loaded.problems.iter().map(ToString::to_string).collect();
        let now = LoadedConfig {
            servers: loaded.servers,
            problems,
            settings: loaded.settings,
        };
        let before = std::mem::replace(&mut *self.current(), now);
        let before: HashSet<_> = before.problems.into_iter().collect();
        for problem in self.problems() {
            if !before.contains(&problem) {
                announce::problem(&problem);
            }
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, LoadedConfig> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The selected built-in services: those of the command line, else of the settings, else the
/// default ones. An invalid selection in the settings is added to the problems.
fn settled(asked: Option<&Choice>, loaded: &mut Loaded) -> Choice {
    if let Some(choice) = asked {
        return choice.clone();
    }
    let chosen = loaded.settings.hub.builtin.as_ref().map(builtin::chosen);
    match chosen {
        Some(Ok(choice)) => choice,
        Some(Err(problem)) => {
            if !loaded.problems.contains(&problem) {
                loaded.problems.push(problem);
            }
            Choice::usual()
        }
        None => Choice::usual(),
    }
}

/// Prints why a server is not connected, unless the same was printed last.
fn tell_failure(told: &mut HashMap<Arc<str>, String>, name: &Arc<str>, status: &Status) {
    let failed = matches!(status.state, ServerState::Failed | ServerState::NeedsAuth);
    let reason = status.reason.as_deref().unwrap_or("it gave no reason");
    if failed && told.get(name).is_none_or(|last| last != reason) {
        announce::problem(&format!("server {name:?}: {}: {reason}", status.state));
        told.insert(Arc::clone(name), reason.to_owned());
    }
}
