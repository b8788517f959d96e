//! What a file's settings change.

use crate::config::entry::{Scope, Source};
use crate::config::problem::ConfigProblem;

use super::{Action, BuiltinWords, ClientSettings, Mode, Rule, RuleTable, Settings, SettingsFile};

impl SettingsFile {
    /// Puts the file's settings over what there is.
    ///
    /// A project's file came with the project, so it may only make the policy stricter, and does
    /// not decide who can reach us.
    pub(super) fn merge_into(
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
        // They come first, because they can make no rule behind them less strict.
        let rules = rules.into_iter().map(|rule| rule.into_rule(source));
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
                refused(
                    "serve",
                    "a project does not decide how Plexus can be reached",
                );
            }
            Some(serve) => settings.serve = serve,
            None => {}
        }
        match self.access {
            Some(_) if of_project => {
                refused("access", "a project does not decide who is let in");
            }
            Some(access) => {
                let is_uncertain = settings.access.is_uncertain;
                settings.access = access;
                settings.access.is_uncertain = is_uncertain;
            }
            None => {}
        }
        if of_project && !self.clients.is_empty() {
            refused(
                "clients",
                "a project does not decide what clients are shown",
            );
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
        match self.hub.builtin {
            Some(_) if of_project => {
                refused("hub.builtin", "a project does not decide what is built in");
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
        }
    }
}
