//! Secrets in plain text in imported definitions, which can be moved to the keyring or to environment
//! variables.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use plexus_mcp_core::{Object, Raw, is_secret_name};
use serde::Serialize;

use super::plan::{ImportAction, Plan, Planned};
use crate::keyring::KeyringEntry;
use crate::output;
use crate::printable::one_line;

/// The service of the keyring's entries.
const SERVICE: &str = "plexus";
/// How long the keyring may take: the user may have to unlock it.
const KEYRING_TIMEOUT: Duration = Duration::from_mins(1);

/// Where secrets in plain text go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretPlace {
    /// They stay in the file.
    Keep,
    /// The desktop's keyring.
    Keyring,
    /// Environment variables, which you set.
    Variable,
}

/// Secrets that are to be stored in the keyring.
#[derive(Default)]
pub(crate) struct KeyringMoves(Vec<(KeyringEntry, String)>);

/// A secret in plain text, by its place in a definition.
struct PlainSecret {
    group: &'static str,
    key: String,
    /// Text before the secret, such as `Bearer `.
    prefix: String,
    secret: String,
}

/// The names of variables that are in use, with their values.
#[derive(Default)]
struct VariableNames(HashMap<String, String>);

#[derive(Serialize)]
struct Reference<'a> {
    keyring: Place<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prefix: &'a str,
}

#[derive(Serialize)]
struct Place<'a> {
    service: &'a str,
    account: &'a str,
}

/// Moves the secrets of the servers that are added to `place`, or to where the user says. Without a
/// choice and a terminal, each gets a note.
///
/// # Errors
/// The terminal cannot be read.
pub(crate) fn move_secrets(
    plan: &mut Plan,
    place: Option<SecretPlace>,
    may_ask: bool,
) -> anyhow::Result<KeyringMoves> {
    let file = plan.file.display().to_string();
    let mut moves = KeyringMoves::default();
    let mut additions: Vec<_> = plan
        .servers
        .iter_mut()
        .filter(|server| matches!(server.action, ImportAction::Added { .. }))
        .map(|server| (find(&server.definition), server))
        .filter(|(secrets, _)| !secrets.is_empty())
        .collect();
    let place = match place {
        None if may_ask && !additions.is_empty() => asked(&additions, &file)?,
        place => place,
    };
    let mut names = VariableNames::default();
    for (secrets, server) in &mut additions {
        for secret in &*secrets {
            let PlainSecret { group, key, .. } = secret;
            match place {
                Some(SecretPlace::Keep) => {}
                None => server.notes.push(format!(
                    "{group}.{key} is a secret in plain text; to move it, use --secrets keyring or \
                     --secrets variable"
                )),
                Some(SecretPlace::Keyring) => {
                    let entry = KeyringEntry {
                        service: SERVICE.to_owned(),
                        account: plain(&format!("{}.{group}.{key}", server.name)),
                    };
                    let reference = Raw::encode(&Reference {
                        keyring: Place {
                            service: &entry.service,
                            account: &entry.account,
                        },
                        prefix: &secret.prefix,
                    })?;
                    put(&mut server.definition, group, key, reference);
                    server
                        .notes
                        .push(format!("{group}.{key} goes to the keyring"));
                    moves.0.push((entry, secret.secret.clone()));
                }
                Some(SecretPlace::Variable) => {
                    let name = names.choose(&server.name, secret);
                    let reference = Raw::string(&format!("{}${{{name}}}", secret.prefix));
                    put(&mut server.definition, group, key, reference);
                    server.notes.push(format!(
                        "set the environment variable {name} to the secret that is in {}",
                        server.from.display()
                    ));
                }
            }
        }
    }
    Ok(moves)
}

impl KeyringMoves {
    /// Stores the secrets.
    ///
    /// # Errors
    /// There is no keyring, or it refuses one.
    pub(crate) async fn store(&self) -> anyhow::Result<()> {
        for (entry, secret) in &self.0 {
            let label = format!("Plexus: {}", entry.account);
            if !entry.store(&label, secret, KEYRING_TIMEOUT).await {
                let tool = if cfg!(target_os = "macos") {
                    "security"
                } else {
                    "secret-tool (of libsecret)"
                };
                bail!(
                    "the keyring does not store {}, for which {tool} is used; nothing was written; \
                     use --secrets variable or --secrets keep",
                    entry.account
                );
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl VariableNames {
    /// The name of the variable for a secret: that of the server's own variable, unless another
    /// server has another value for it.
    fn choose(&mut self, server: &str, secret: &PlainSecret) -> String {
        let name = |text: &str| plain(text).replace(['.', '-'], "_").to_uppercase();
        let mut chosen = name(&secret.key);
        let is_taken = self
            .0
            .get(&chosen)
            .is_some_and(|other| *other != secret.secret);
        if is_taken || secret.group != "env" {
            chosen = name(&format!("{server}_{}", secret.key));
        }
        self.0.insert(chosen.clone(), secret.secret.clone());
        chosen
    }
}

fn asked(
    additions: &[(Vec<PlainSecret>, &mut Planned)],
    file: &str,
) -> anyhow::Result<Option<SecretPlace>> {
    let names = additions.iter().flat_map(|(secrets, server)| {
        let name = &server.name;
        secrets
            .iter()
            .map(move |secret| format!("{name}: {}.{}", secret.group, secret.key))
    });
    let names: Vec<_> = names.collect();
    if !output::can_ask() {
        return Ok(None);
    }
    let names = one_line(&names.join(", "));
    let question = format!(
        "these are secrets in plain text: {names}\nmove them to the [k]eyring, to environment \
         [v]ariables, or keep them in {file}? [k/v/N] "
    );
    Ok(Some(match output::answer(question)?.as_str() {
        "k" | "keyring" => SecretPlace::Keyring,
        "v" | "variable" | "variables" => SecretPlace::Variable,
        _ => SecretPlace::Keep,
    }))
}

/// The secrets of a definition. A value with a reference to a variable is none.
fn find(definition: &Raw) -> Vec<PlainSecret> {
    let Ok(definition) = Object::parse(definition) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for group in ["env", "headers", "oauth"] {
        let Some(members) = definition
            .get(group)
            .and_then(|raw| Object::parse(raw).ok())
        else {
            continue;
        };
        for (key, value) in members.iter() {
            let is_secret = match group {
                "oauth" => key == "clientSecret",
                _ => is_secret_name(key),
            };
            let Some(text) = value.text().filter(|_| is_secret) else {
                continue;
            };
            if text.is_empty() || text.contains("${") {
                continue;
            }
            let scheme = text.split_once(' ').filter(|_| group == "headers");
            let (prefix, secret) = match scheme {
                Some((scheme, secret)) => (format!("{scheme} "), secret),
                None => (String::new(), text.as_ref()),
            };
            found.push(PlainSecret {
                group,
                key: key.to_owned(),
                prefix,
                secret: secret.to_owned(),
            });
        }
    }
    found
}

fn put(definition: &mut Raw, group: &'static str, key: &str, value: Raw) {
    let Ok(mut object) = Object::parse(definition) else {
        return;
    };
    let members = object.get(group).and_then(|raw| Object::parse(raw).ok());
    let mut members = members.unwrap_or_default();
    members.set(key.to_owned(), value);
    object.set(group, members.to_raw());
    *definition = object.to_raw();
}

/// The text with underscores in place of all but letters, digits, dots and hyphens.
fn plain(text: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || ".-".contains(c) {
            c
        } else {
            '_'
        }
    };
    text.chars().map(kept).collect()
}
