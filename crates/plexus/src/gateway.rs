//! The gateway: the built-in tools and the configured servers, as one service.

mod apply;
mod builtin;
mod call_log;
mod failures;
mod fixed_catalogue;
mod load;
mod members;
mod notice;
mod report;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use plexus_mcp_agents::{Builtin, BuiltinSelection, Extras};
use plexus_mcp_config::{
    self as config, ConfigProblem, Limits, Loaded, Locations, ServerEntry, Settings, Start,
};
use plexus_mcp_core::Service;
use plexus_mcp_hub::Hub;
use plexus_mcp_hub::catalogue_cache::CatalogueCache;

pub(crate) use members::{refuse_reserved, refused};
pub(crate) use report::ServerReport;

use builtin::Builtins;
use load::{has_invalid_servers, load, selected_builtins};

use crate::auth::SignInCallbacks;
use crate::cli::Profile;
use crate::process_env::locations;
use crate::serve_chain::{OwnEndpoint, ServeChain};
use crate::{data, health};

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
    /// Where it serves HTTP, if it does.
    endpoint: Option<OwnEndpoint>,
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
    /// Where it serves HTTP, if it does.
    pub(crate) endpoint: Option<OwnEndpoint>,
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

/// The same, unless a settings file cannot be used: it may deny anything.
///
/// # Errors
/// There is no data directory, or a settings file cannot be used.
pub(crate) async fn configured_for_agent(options: GatewayOptions) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(options)?;
    usable_settings(&loaded.problems)?;
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
            endpoint,
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
            endpoint,
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

    /// The home directory of the user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.locations.home.as_deref()
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

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.hub.close().await;
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

    fn current(&self) -> std::sync::MutexGuard<'_, LoadedConfig> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
