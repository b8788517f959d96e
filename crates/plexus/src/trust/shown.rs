//! A definition as its user must see it before approving it: everything that decides what runs, as
//! it is written.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use plexus_mcp_client::Program;
use plexus_mcp_config::{Kind, SecretSource, ServerEntry, Text};
use plexus_mcp_core::is_secret_name;
use serde::Serialize;
use serde_json::Value;

use crate::printable::one_line;
use crate::serve_chain;

/// A longer definition cannot be approved, because its user cannot be expected to read it.
const MAX_SHOWN_BYTES: usize = 16 * 1024;
/// The first characters of a secret, by which its user recognises it.
const SECRET_PREFIX_CHARS: usize = 4;
/// A shorter value of a secret is shown as it is.
const MIN_SECRET_CHARS: usize = 16;
/// The members whose values are shown with the name of each.
const GROUPS: [&str; 3] = ["env", "headers", "oauth"];
/// The members that the first line shows.
const IN_FIRST_LINE: [&str; 4] = ["type", "command", "args", "url"];

/// A definition, for scripts.
#[derive(Serialize)]
pub(super) struct ShownDefinition<'a> {
    name: &'a str,
    scope: &'static str,
    file: &'a Path,
    approved: bool,
    definition: BTreeMap<String, Value>,
    /// The variables of its environment file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    file_variables: BTreeMap<&'a str, String>,
    /// Why it cannot be used, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl<'a> ShownDefinition<'a> {
    pub(super) fn of(entry: &'a ServerEntry, approved: bool) -> Self {
        let variables = entry.written().file_variables.iter();
        Self {
            name: &entry.name,
            scope: entry.source.scope.as_str(),
            file: &entry.source.file,
            approved,
            definition: members(entry).into_iter().collect(),
            file_variables: variables
                .map(|(name, value)| (name.as_str(), shortened(name, value)))
                .collect(),
            problem: serve_chain::loop_in(entry),
        }
    }
}

/// Everything that is approved: the command line or URL, then each other member, and the programs
/// that fetch secrets.
pub(super) fn described(mark: char, entry: &ServerEntry) -> String {
    let mut lines = vec![format!("{mark} {}  {}", entry.name, target(entry))];
    for (key, value) in members(entry) {
        match value {
            Value::Object(values) if GROUPS.contains(&key.as_str()) => {
                let values = values.iter();
                lines.extend(values.map(|(name, value)| format!("    {key}.{name}: {value}")));
            }
            _ if IN_FIRST_LINE.contains(&key.as_str()) => {}
            value => lines.push(format!("    {key}: {value}")),
        }
    }
    for (name, value) in &entry.written().file_variables {
        let value = Value::String(shortened(name, value));
        lines.push(format!("    of env_file: {name}: {value}"));
    }
    for source in entry.secret_sources() {
        if let SecretSource::Command { .. } = source {
            lines.push(format!("    for a secret: {}", source.program()));
        }
    }
    if let Some(problem) = serve_chain::loop_in(entry) {
        lines.push(format!("    cannot be used: {problem}"));
    }
    lines.iter().map(|line| one_line(line) + "\n").collect()
}

/// Checks that the definition is short enough to be read.
///
/// # Errors
/// It is not, so it cannot be approved.
pub(super) fn check_length(entry: &ServerEntry) -> anyhow::Result<()> {
    let length = described('+', entry).len();
    if length > MAX_SHOWN_BYTES {
        bail!(
            "the definition of {:?} has {length} bytes when it is shown, so it cannot be read and \
             is not approved; the most is {MAX_SHOWN_BYTES} bytes\n\n  tip: shorten it in {}, or \
             name the servers to approve: plexus trust SERVER",
            entry.name,
            entry.source.file.display()
        );
    }
    Ok(())
}

/// The kind of a server, and its command line, quoted as for a shell, or URL. Variables are not
/// expanded, and nothing is masked.
fn target(entry: &ServerEntry) -> String {
    let what = match &entry.kind {
        Kind::Stdio { command, args, .. } => {
            let args = args.iter().map(Text::written);
            Program::new(command.written()).args(args).to_string()
        }
        Kind::Http { url, .. } | Kind::Sse { url, .. } => url.written().to_owned(),
        Kind::Builtin(name) => name.clone(),
        Kind::Unsupported(reason) => reason.clone(),
    };
    format!("{}  {what}", entry.kind.name())
}

/// The members of the definition, with values of secrets shortened.
fn members(entry: &ServerEntry) -> Vec<(String, Value)> {
    let members = entry.written().members.iter();
    members
        .map(|(key, raw)| {
            let mut value: Value = raw.decode().unwrap_or_else(|_| raw.as_str().into());
            if let Value::Object(values) = &mut value
                && GROUPS.contains(&key)
            {
                for (name, value) in values {
                    if let Value::String(text) = value {
                        *text = shortened(name, text);
                    }
                }
            }
            (key.to_owned(), value)
        })
        .collect()
}

/// The value of a variable or header. A secret is shortened if it is one token, which is neither a
/// path nor a command with arguments, and holds no variable; a scheme such as `Bearer` may precede
/// it.
fn shortened(name: &str, value: &str) -> String {
    let (scheme, token) = match value.split_once(' ') {
        Some((scheme, token)) => (format!("{scheme} "), token),
        None => (String::new(), value),
    };
    let is_scheme = matches!(scheme.as_str(), "" | "Bearer " | "Basic " | "Token ");
    let is_token = token.len() >= MIN_SECRET_CHARS
        && token.bytes().any(|byte| byte.is_ascii_digit())
        && token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=+.".contains(&byte));
    if !(is_scheme && is_token && is_secret_name(name)) {
        return value.to_owned();
    }
    let prefix: String = token.chars().take(SECRET_PREFIX_CHARS).collect();
    format!("{scheme}{prefix}… ({} characters)", token.len())
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn only_values_of_secrets_are_shortened() {
        let token = "ghp_0123456789abcdef";
        assert_eq!(shortened("GITHUB_TOKEN", token), "ghp_… (20 characters)");
        assert_eq!(
            shortened("Authorization", &format!("Bearer {token}")),
            "Bearer ghp_… (20 characters)"
        );
        for (name, value) in [
            ("PATH", token),
            ("GIT_ASKPASS", "askpass-0123456789abcdef"),
            ("TOKEN", "/tmp/evil/0123456789"),
            ("TOKEN", "${OTHER_SECRET_0123456789}"),
            ("TOKEN", "sh -c 0123456789abcdef"),
            ("TOKEN", "short1"),
        ] {
            assert_eq!(shortened(name, value), value);
        }
    }
}
