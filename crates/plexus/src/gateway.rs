//! The gateway: the built-in tools and the servers that are configured, as one service.

mod builtin;
mod founding;
mod members;
mod report;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_activations::{Builtin, Choice, Extras};
use plexus_client::{State, Status};
use plexus_hub::config::{
    self, Loaded, Locations, Scope, ServerEntry, Settings, Start, WatchError, Watcher,
};
use plexus_hub::policy::Policy;
use plexus_hub::remembered::Remembered;
use plexus_hub::{Hub, HubEvent, SetMembers, manage};
use plexus_service::Service;
use tokio::sync::broadcast::error::RecvError;

pub(crate) use report::ServerReport;

use builtin::Builtins;

use crate::auth::Landing;
use crate::cli::Profile;
use crate::surroundings::{environment, locations};
use crate::trust::Approvals;
use crate::{announce, data, health};

/// How long servers of whom nothing is known yet are waited for before the first client is
/// answered without them.
const HEAD_START: Duration = Duration::from_millis(700);

/// How long servers that are being connected for the first time are waited for after the client has
/// gone, so that the next one sees their tools at once.
const LINGER: Duration = Duration::from_secs(5);

/// How long the first clients have for themselves before the files are watched, and servers are
/// connected that nobody waits for.
const HEADROOM: Duration = Duration::from_millis(300);

/// The name under which clients are configured that have no settings of their own.
const EVERYBODY: &str = "*";

/// The hub of everything that is configured, and what it was made from.
pub(crate) struct Gateway {
    /// What is served.
    pub(crate) hub: Hub,
    builtins: Builtins,
    /// Which of them are offered, whatever the settings say.
    choice: Option<Choice>,
    /// What is offered besides.
    also: Vec<Builtin>,
    /// Every client searches for tools, whatever the settings say.
    tool_search: bool,
    profile: Profile,
    locations: Locations,
    data: PathBuf,
    /// Where callers come back to from sign-in pages, if they are offered any.
    landing: Option<Landing>,
    /// What the files said when they were last read.
    current: Mutex<Current>,
    /// One reads the files at a time.
    applying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    servers: Vec<ServerEntry>,
    problems: Vec<String>,
    settings: Settings,
}

/// What a gateway is made of, besides what is configured.
#[derive(Default)]
pub(crate) struct Opening {
    /// The system to be.
    pub(crate) profile: Profile,
    /// Further files with servers.
    pub(crate) files: Vec<PathBuf>,
    /// What is built in that not everybody is offered.
    pub(crate) extras: Extras,
    /// What of all that is built in is offered, if it is not for the settings to say.
    pub(crate) choice: Option<Choice>,
    /// What is offered besides.
    pub(crate) also: Vec<Builtin>,
    /// Clients find tools by searching, even if the settings do not say so.
    pub(crate) tool_search: bool,
    /// Where callers come back to from the pages where servers want them to sign in, if they are
    /// offered any.
    pub(crate) landing: Option<Landing>,
}

/// Opens the hub of all servers that are configured for the current directory and user, of those
/// in further files, and of the built-in tools. Nobody is connected yet: see [`Gateway::start`] and
/// the methods of [`Hub`]. What is wrong with a file or a server is said on standard error, and costs
/// the others nothing.
///
/// # Errors
/// There is no place for data.
pub(crate) async fn configured(opening: Opening) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(opening)?;
    gateway.apply(loaded).await;
    Ok(gateway)
}

/// The same, for somebody who says in their own way what is wrong with the files.
///
/// # Errors
/// As above.
pub(crate) async fn configured_quietly(opening: Opening) -> anyhow::Result<Gateway> {
    let (gateway, loaded) = Gateway::open(opening)?;
    gateway.current().problems = loaded.problems.iter().map(ToString::to_string).collect();
    gateway.apply(loaded).await;
    Ok(gateway)
}

impl Gateway {
    /// The gateway, and what the files say.
    fn open(opening: Opening) -> anyhow::Result<(Self, Loaded)> {
        let Opening {
            profile,
            files,
            mut extras,
            choice,
            also,
            tool_search,
            landing,
        } = opening;
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
        let remembered = Remembered::in_directory(data.join("catalogues"));
        let identity = builtins.service().catalogue().borrow().identity.clone();
        let hub = Hub::remembering(identity, remembered);
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
            landing,
            current: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
        };
        Ok((gateway, loaded))
    }

    /// What clients are served: the hub, but the built-in tools alone where a founding system is
    /// to be shown and no servers were named.
    pub(crate) fn service(&self) -> Arc<dyn Service> {
        let hub = self.hub.clone();
        if self.profile.is_closed() && self.locations.explicit.is_empty() {
            Arc::new(founding::Founding::new(hub, self.builtins.service()))
        } else {
            Arc::new(hub)
        }
    }

    /// Tells subscribers what other processes change, for as long as it is polled.
    pub(crate) fn follow_data(&self) -> impl Future<Output = Infallible> + Send + use<> {
        self.builtins.follow()
    }

    /// Says on standard error what of the data cannot be used.
    pub(crate) async fn announce_problems_of_data(&self) {
        data::announce_problems(self.builtins.data()).await;
    }

    /// The project whose servers these are.
    pub(crate) fn project(&self) -> &Path {
        &self.locations.project_dir
    }

    /// The servers that are configured, in the order of precedence.
    pub(crate) fn servers(&self) -> Vec<ServerEntry> {
        self.current().servers.clone()
    }

    /// What is wrong with the files, a line each.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.current().problems.clone()
    }

    /// What tools may do, as the settings say.
    pub(crate) fn policy(&self) -> config::Policy {
        self.current().settings.policy.clone()
    }

    /// The built-in service that a tool of this name would be of, if it is not offered.
    pub(crate) fn left_out(&self, tool: &str) -> Option<Builtin> {
        self.builtins.left_out(tool)
    }

    /// Begins to connect the servers of whom nothing is known yet, and gives them a moment to say
    /// what they offer. Whoever is not there by then is announced when it is.
    pub(crate) async fn start(&self) {
        self.hub.connect_unknown_in_background();
        self.hub.settle(HEAD_START).await;
    }

    /// Connects the others, too, if the settings say so: what they offer is known, so that nobody
    /// waits for them.
    pub(crate) async fn connect_the_others(&self) {
        // The first clients come first.
        tokio::time::sleep(HEADROOM).await;
        self.connect();
    }

    /// Reads the files again, and changes what they changed. Servers that stayed the same are not
    /// touched.
    pub(crate) async fn reload(&self) -> SetMembers {
        let locations = self.locations.clone();
        let reading = tokio::task::spawn_blocking(move || config::load(&locations, &environment));
        match reading.await {
            Ok(loaded) => self.refresh(loaded).await,
            // The program is ending.
            Err(_) => SetMembers::default(),
        }
    }

    /// Follows the files for as long as it is polled.
    ///
    /// # Errors
    /// The system cannot watch files.
    pub(crate) async fn follow_files(&self) -> Result<Infallible, WatchError> {
        // The first clients come first.
        tokio::time::sleep(HEADROOM).await;
        let environment = Arc::new(environment);
        let (loaded, mut watcher) = Watcher::start(self.locations.clone(), environment).await?;
        // Something may have changed since they were first read.
        self.refresh(loaded).await;
        #[expect(
            clippy::infinite_loop,
            reason = "whoever polls it decides when it ends"
        )]
        loop {
            let loaded = watcher.changed().await;
            self.refresh(loaded).await;
        }
    }

    /// Says on standard error when a server cannot be connected or is lost, for as long as it is
    /// polled (S001-41, S001-61).
    pub(crate) async fn announce_failures(&self) {
        let mut events = self.hub.events();
        let mut told: HashMap<Arc<str>, String> = HashMap::new();
        // Some may have failed before anybody listened.
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

    /// Finishes what the next gateway profits from; dropping the future gives that up.
    pub(crate) async fn linger(&self) {
        self.hub.finish_first_connections(LINGER).await;
    }

    /// Ends all connections.
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
                "the servers were changed"
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

    /// Makes the hub what the files say.
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
            members.extend(members::configured(entry, admitted, self.landing.as_ref()));
            trusted.extend(entry.trusted.then(|| entry.name.clone()));
        }
        let policy = Policy::behind_client(&loaded.settings.policy).trusting(trusted);
        self.hub.set_policy(policy);
        let mut clients = loaded.settings.clients.clone();
        if self.tool_search {
            clients.entry(EVERYBODY.to_owned()).or_default();
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

    /// A file that cannot be read any more, as after a slip of the keyboard, does not take its
    /// servers away: they stay as they were until it can be read again.
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

    /// Keeps what was read, and says what is newly wrong with it.
    fn note(&self, loaded: Loaded) {
        let problems = loaded.problems.iter().map(ToString::to_string).collect();
        let now = Current {
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

    fn current(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which built-in services are offered: those that were asked for, else those of the settings, else
/// the usual ones. What is wrong with the settings is one more problem.
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

/// Says why a server is not connected, unless that was the last thing said of it.
fn tell_failure(told: &mut HashMap<Arc<str>, String>, name: &Arc<str>, status: &Status) {
    let failed = matches!(status.state, State::Failed | State::NeedsAuth);
    let reason = status.reason.as_deref().unwrap_or("it gave no reason");
    if failed && told.get(name).is_none_or(|last| last != reason) {
        announce::problem(&format!("server {name:?}: {}: {reason}", status.state));
        told.insert(Arc::clone(name), reason.to_owned());
    }
}
