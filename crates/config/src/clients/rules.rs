//! Translation of the keys of other clients.

use std::time::Duration;

use plexus_mcp_wire::{Kind, Object, Raw};

/// What becomes of a member that has a counterpart.
#[derive(Debug)]
pub(super) enum Rule {
    /// It only has another name.
    Rename(&'static str),
    /// Seconds become milliseconds.
    Seconds(&'static str),
    /// Milliseconds become seconds.
    Millis(&'static str),
    /// `false` becomes `"disabled": true`.
    Enabled,
    /// The client's registration at the authorization server, with the names of its members.
    OAuth(&'static [(&'static str, &'static str)]),
    /// It says nothing that has to be said here.
    Implied,
}

/// The keys that have the same meaning here.
const OWN: [&str; 24] = [
    "type",
    "command",
    "args",
    "env",
    "env_file",
    "cwd",
    "url",
    "headers",
    "disabled",
    "serialize",
    "trusted",
    "auto_restart",
    "startup_timeout",
    "startup_wait",
    "timeout_ms",
    "era",
    "affinity",
    "roots",
    "allow",
    "deny",
    "account",
    "identity",
    "audience",
    "oauth",
];

/// The members of `oauth` that have the same meaning here.
const OWN_OAUTH: [&str; 12] = [
    "clientId",
    "clientSecret",
    "issuer",
    "callbackPort",
    "grant",
    "privateKey",
    "algorithm",
    "keyId",
    "assertion",
    "idToken",
    "idpClientId",
    "idpTokenEndpoint",
];

/// A definition during its translation.
#[derive(Default)]
pub(super) struct Translation {
    pub(super) definition: Object,
    /// Steps that the user must take.
    pub(super) notes: Vec<String>,
    /// The members without a counterpart.
    pub(super) left_out: Vec<String>,
    /// Why the server cannot be taken over.
    pub(super) refused: Option<String>,
}

impl Translation {
    pub(super) fn of(definition: Object) -> Self {
        Self {
            definition,
            ..Self::default()
        }
    }

    /// Translates the members one by one, in order.
    pub(super) fn apply(&mut self, rules: &[(&str, Rule)]) {
        let written = std::mem::take(&mut self.definition);
        for (key, value) in written.iter() {
            // For most clients, this is the same as no value.
            if value.kind() == Kind::Null {
                continue;
            }
            let rule = rules.iter().find(|(theirs, _)| *theirs == key);
            let translated = match rule {
                Some((_, Rule::Implied)) => continue,
                Some((_, Rule::Enabled)) => match value.as_str() {
                    "true" => continue,
                    "false" => Some(("disabled", literal(&true))),
                    _ => None,
                },
                Some((_, rule)) => self.translated(key, rule, value),
                None if key == "oauth" => self.oauth(key, &[], value).map(|raw| (key, raw)),
                None if OWN.contains(&key) => Some((key, value.clone())),
                None => None,
            };
            match translated {
                // A member that already has our name is not overwritten.
                Some((ours, value)) if ours == key || !written.contains(ours) => {
                    self.definition.set(ours.to_owned(), value);
                }
                _ => self.left_out.push(key.to_owned()),
            }
        }
    }

    fn translated(&mut self, key: &str, rule: &Rule, value: &Raw) -> Option<(&'static str, Raw)> {
        match *rule {
            Rule::Rename(ours) => Some((ours, value.clone())),
            Rule::Seconds(ours) => {
                let time = Duration::try_from_secs_f64(value.decode().ok()?).ok()?;
                let millis = u64::try_from(time.as_millis()).ok()?;
                Some((ours, literal(&millis)))
            }
            Rule::Millis(ours) => {
                let time = Duration::from_millis(value.decode().ok()?);
                let seconds = time.as_secs();
                let seconds = if time == Duration::from_secs(seconds) {
                    literal(&seconds)
                } else {
                    literal(&time.as_secs_f64())
                };
                Some((ours, seconds))
            }
            Rule::OAuth(names) => Some(("oauth", self.oauth(key, names, value)?)),
            Rule::Enabled | Rule::Implied => None,
        }
    }

    /// The object `oauth`, without members that have no counterpart.
    fn oauth(&mut self, key: &str, names: &[(&str, &'static str)], value: &Raw) -> Option<Raw> {
        let written = Object::parse(value).ok()?;
        let mut oauth = Object::new();
        for (member, value) in written.iter() {
            let renamed = names.iter().find(|(theirs, _)| *theirs == member);
            match renamed {
                _ if value.kind() == Kind::Null => {}
                Some((_, ours)) => {
                    oauth.set(*ours, value.clone());
                }
                None if OWN_OAUTH.contains(&member) => {
                    oauth.set(member.to_owned(), value.clone());
                }
                None => self.left_out.push(format!("{key}.{member}")),
            }
        }
        Some(oauth.to_raw())
    }
}

/// Strings, numbers and truth values are always JSON.
pub(super) fn literal(value: &(impl serde::Serialize + ?Sized)) -> Raw {
    Raw::encode(value).unwrap_or_else(|_| Raw::null())
}
