//! Loads the configuration, and loads it again when its files change.

use std::convert::Infallible;
use std::sync::Arc;

use plexus_mcp_agents::BuiltinSelection;
use plexus_mcp_config::{
    self as config, ConfigProblem, Kind, Loaded, Locations, ServerEntry, WatchError, Watcher,
};
use plexus_mcp_hub::SetMembers;

use super::{Gateway, builtin};
use crate::process_env::environment;

impl Gateway {
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
}

/// Reads the files; of those, only the settings count for a server that is in no file.
pub(super) fn load(locations: &Locations, ad_hoc: Option<&ServerEntry>) -> Loaded {
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
pub(super) fn has_invalid_servers(problems: &[ConfigProblem], locations: &Locations) -> bool {
    let sources = locations.sources();
    problems.iter().any(|problem| {
        let is_in_servers_file = || sources.iter().any(|source| source.file == problem.file);
        !problem.is_about_permissions() && (problem.server.is_some() || is_in_servers_file())
    })
}

/// The selected built-in services: those of the command line, else of the settings; else, if no
/// server is configured, the default ones. An invalid selection in the settings is added to the
/// problems.
pub(super) fn selected_builtins(
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
