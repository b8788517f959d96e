//! Merging of settings files.

use crate::entry::{Scope, Source};
use crate::problem::ConfigProblem;

use super::file::{Order, PageSize, RuleTable, SettingsFile, startup_wait};
use super::{Action, BuiltinWords, ClientSettings, Mode, Rule, Settings};

impl SettingsFile {
    /// Merges the file's settings over `settings`.
    ///
    /// A project's file may be written by someone else than the user, so it may only make the policy
    /// stricter, and cannot change the addresses and access rules of Plexus.
    pub(crate) fn merge_into(
        self,
        settings: &mut Settings,
        source: &Source,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let of_project = source.scope == Scope::Project;
        let mut refused = |key: &str, what: &str| {
            let problem = ConfigProblem::new(&source.file, what).key(key);
            problems.push(problem.advice("put it into your own plexus.toml"));
        };
        let (rules, refused_rules): (Vec<_>, Vec<_>) = self
            .policy
            .rules
            .into_iter()
            .partition(|rule| !(of_project && rule.action == Action::Allow));
        for rule in refused_rules {
            let what = format!("a project cannot allow {:?} by itself", rule.tool);
            refused("policy.rules", &what);
        }
        // A project's rules come first, because they can only make the following rules stricter.
        let first_match = self.policy.order == Order::FirstMatch;
        let rules = rules.into_iter().map(|rule| Rule {
            first_match,
            ..rule.into_rule(source)
        });
        settings.policy.rules.splice(0..0, rules);

        match self.policy.mode {
            Some(Mode::DangerouslySkipPermissions) if of_project => {
                refused("policy.mode", "a project cannot skip permissions by itself");
            }
            Some(mode) if of_project => settings.policy.mode = settings.policy.mode.max(mode),
            Some(mode) => settings.policy.mode = mode,
            None => {}
        }
        match self.serve {
            Some(_) if of_project => {
                refused("serve", "a project cannot configure how Plexus is reached");
            }
            Some(serve) => settings.serve = serve,
            None => {}
        }
        match self.access {
            Some(_) if of_project => {
                refused("access", "a project cannot configure access control");
            }
            Some(access) => {
                let is_uncertain = settings.access.is_uncertain;
                settings.access = access;
                settings.access.is_uncertain = is_uncertain;
            }
            None => {}
        }
        if of_project && !self.clients.is_empty() {
            refused("clients", "a project cannot configure what clients see");
        } else {
            for (name, client) in self.clients {
                // Its globs were checked when the file was read.
                if let Ok(tools) = client.tools.compiled() {
                    let search = client.search;
                    settings
                        .clients
                        .insert(name, ClientSettings { tools, search });
                }
            }
        }
        if let Some(start) = self.hub.start {
            settings.hub.start = start;
        }
        if let Some(seconds) = self.hub.startup_wait {
            settings.hub.startup_wait = startup_wait(seconds);
        }
        match self.limits {
            Some(_) if of_project => {
                refused("limits", "a project cannot set limits");
            }
            Some(table) => {
                // The values were checked when the file was read.
                if let Ok(limits) = table.limits(&source.file) {
                    settings.limits = limits;
                }
            }
            None => {}
        }
        match self.hub.page_size {
            Some(_) if of_project => {
                refused("hub.page_size", "a project cannot set the page size");
            }
            Some(PageSize::Entries(entries)) => settings.hub.page_size = Some(entries),
            None => {}
        }
        match self.hub.management {
            Some(_) if of_project => {
                refused("hub.management", "a project cannot offer management tools");
            }
            Some(management) => settings.hub.management = management,
            None => {}
        }
        match self.hub.builtin {
            Some(_) if of_project => {
                refused("hub.builtin", "a project cannot select built-in services");
            }
            Some(names) => {
                settings.hub.builtin = Some(BuiltinWords {
                    words: names.words(),
                    file: source.file.clone(),
                });
            }
            None => {}
        }
    }
}

impl RuleTable {
    fn into_rule(self, source: &Source) -> Rule {
        Rule {
            tool: self.tool,
            pattern: self.pattern,
            principal: self.principal,
            scope: self.scope,
            action: self.action,
            file: source.file.clone(),
            first_match: false,
            awaits_approval: false,
        }
    }
}
