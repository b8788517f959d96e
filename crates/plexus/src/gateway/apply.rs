//! Applies a loaded configuration to the hub.

use std::collections::HashSet;
use std::path::Path;

use plexus_mcp_config::{Loaded, Scope, ServerEntry};
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{SetMembers, manage};

use super::load::selected_builtins;
use super::members::{self, refuse_reserved};
use super::{ANY_CLIENT, Gateway, LoadedConfig};
use crate::announce;
use crate::trust::{self, Approvals};

impl Gateway {
    /// Applies the configuration to the hub.
    pub(super) async fn apply(&self, mut loaded: Loaded) -> SetMembers {
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
                self.endpoint.as_ref(),
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
}
