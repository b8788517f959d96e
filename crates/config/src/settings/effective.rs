//! The settings in effect, key by key, each with the file that it comes from.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::limits::seconds;
use super::{Access, Action, Mode, Rule, SecretReference, Settings, Start};
use crate::disk;
use crate::entry::{Scope, Source};
use crate::load::load_settings;
use crate::locations::Locations;
use crate::problem::ConfigProblem;
use crate::secret::SecretSource;

/// A key of `plexus.toml` with the value that is in effect.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EffectiveKey {
    /// The key, with its tables: `hub.start`.
    pub key: String,
    /// Its value; `None` for a default that this crate does not know.
    pub value: Option<Value>,
    /// The file that sets it; `None` for a default.
    pub file: Option<PathBuf>,
}

/// Every key of `plexus.toml` with the value that is in effect, in the order of the reference, and
/// the problems of the files. Secrets are never in these files, only references to them.
pub fn effective_settings(locations: &Locations) -> (Vec<EffectiveKey>, Vec<ConfigProblem>) {
    let sources = locations.settings_files();
    let (settings, problems) = load_settings(locations);
    let mut keys = values(&settings);
    for effective in &mut keys {
        if effective.file.is_none() {
            effective.file = source_of(&effective.key, &sources, &problems);
        }
    }
    (keys, problems)
}

/// The file with precedence that sets `key`, and may do so.
fn source_of(key: &str, sources: &[Source], problems: &[ConfigProblem]) -> Option<PathBuf> {
    let sets = |source: &&Source| {
        let text = disk::read(&source.file).ok().flatten();
        let table = text.and_then(|text| text.parse::<toml::Table>().ok());
        let is_refused = source.scope == Scope::Project
            && problems.iter().any(|problem| {
                let refused = problem.key.as_deref();
                problem.file == source.file
                    && refused.is_some_and(|refused| is_within(key, refused))
            });
        !is_refused && table.is_some_and(|table| contains(&table, key))
    };
    sources.iter().find(sets).map(|source| source.file.clone())
}

fn is_within(key: &str, table: &str) -> bool {
    let rest = key.strip_prefix(table);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether the table has the key. The name of a client may contain dots.
fn contains(table: &toml::Table, key: &str) -> bool {
    table.iter().any(|(name, value)| {
        let Some(rest) = key.strip_prefix(name.as_str()) else {
            return false;
        };
        match (rest.strip_prefix('.'), value) {
            (None, _) => rest.is_empty(),
            (Some(rest), toml::Value::Table(inner)) => contains(inner, rest),
            (Some(_), _) => false,
        }
    })
}

fn values(settings: &Settings) -> Vec<EffectiveKey> {
    let Settings {
        policy,
        serve,
        access,
        hub,
        limits,
        clients,
    } = settings;
    let mut keys = Keys::default();
    keys.set("hub.start", start(hub.start));
    let builtin = hub.builtin.as_ref();
    keys.maybe(
        "hub.builtin",
        builtin.map(|words| builtin_value(&words.words)),
    );
    keys.set("hub.management", hub.management);
    keys.maybe("hub.startup_wait", hub.startup_wait.map(seconds));
    keys.maybe("hub.page_size", hub.page_size.map(NonZeroUsize::get));
    keys.maybe("serve.http", serve.http.map(|address| address.to_string()));
    keys.set("serve.sse", serve.sse);
    keys.maybe("serve.path", serve.path.clone());
    keys.set("serve.allow_hosts", serve.allow_hosts.clone());
    keys.set("serve.allow_origins", serve.allow_origins.clone());
    for (name, client) in clients {
        keys.set(
            &format!("clients.{name}.tools.allow"),
            client.tools.allow().to_vec(),
        );
        keys.set(
            &format!("clients.{name}.tools.deny"),
            client.tools.deny().to_vec(),
        );
        keys.set(&format!("clients.{name}.search"), client.search);
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        keys.set(&format!("policy.rules[{index}]"), rule_value(rule));
        if let Some(last) = keys.0.last_mut() {
            last.file = Some(rule.file.clone());
        }
    }
    keys.set("policy.mode", mode(policy.mode));
    set_access(&mut keys, access);
    for (key, value) in limits.values() {
        keys.set(&format!("limits.{key}"), value);
    }
    keys.0
}

fn set_access(keys: &mut Keys, access: &Access) {
    keys.set("access.required", access.required);
    keys.maybe("access.resource", access.resource.clone());
    keys.set("access.scopes", access.scopes.clone());
    keys.set("access.dpop", access.dpop);
    let issuers = access.issuers.iter().map(|issuer| {
        let mut shown = Map::new();
        shown.insert("issuer".to_owned(), json!(issuer.issuer));
        if let Some(uri) = &issuer.jwks_uri {
            shown.insert("jwks_uri".to_owned(), json!(uri));
        }
        if let Some(client) = &issuer.introspection {
            let mut introspection = json!({
                "client_id": client.client_id,
                "client_secret": reference(&client.client_secret),
            });
            if let (Some(endpoint), Value::Object(members)) = (&client.endpoint, &mut introspection)
            {
                members.insert("endpoint".to_owned(), json!(endpoint));
            }
            shown.insert("introspection".to_owned(), introspection);
        }
        Value::Object(shown)
    });
    keys.set("access.issuers", issuers.collect::<Vec<_>>());
}

#[derive(Default)]
struct Keys(Vec<EffectiveKey>);

impl Keys {
    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.maybe(key, Some(value));
    }

    fn maybe(&mut self, key: &str, value: Option<impl Into<Value>>) {
        self.0.push(EffectiveKey {
            key: key.to_owned(),
            value: value.map(Into::into),
            file: None,
        });
    }
}

/// `all` or `none`, or else a list of names.
fn builtin_value(words: &str) -> Value {
    match words {
        "all" | "none" => words.into(),
        names => names.split(',').map(str::trim).collect(),
    }
}

fn start(start: Start) -> &'static str {
    match start {
        Start::Eager => "eager",
        Start::Lazy => "lazy",
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::DangerouslySkipPermissions => "dangerously-skip-permissions",
        Mode::Default => "default",
        Mode::DontAsk => "dont-ask",
    }
}

fn rule_value(rule: &Rule) -> Value {
    let action = match rule.action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    };
    let members = [
        ("tool", Some(rule.tool.as_str())),
        ("action", Some(action)),
        ("pattern", rule.pattern.as_deref()),
        ("principal", rule.principal.as_deref()),
        ("scope", rule.scope.as_deref()),
        // A key of the rule's file.
        ("order", rule.first_match.then_some("first-match")),
        (
            "approval",
            rule.awaits_approval.then_some("missing, see plexus trust"),
        ),
    ];
    let written = members
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Value::Object(
        written
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect(),
    )
}

fn reference(secret: &SecretReference) -> Value {
    match secret {
        SecretReference::Variable(name) => json!({ "env": name }),
        SecretReference::Source(SecretSource::Command { command, args }) => {
            let words: Vec<_> = std::iter::once(command).chain(args).collect();
            json!({ "command": words })
        }
        SecretReference::Source(SecretSource::Keyring { service, account }) => {
            json!({ "keyring": { "service": service, "account": account } })
        }
    }
}

#[cfg(test)]
mod tests;
