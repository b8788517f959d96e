//! `plexus.toml`: Plexus's own settings.

mod access;
mod merge;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use globset::Glob;
use serde::Deserialize;

use super::disk;
use super::entry::{Scope, Source};
use super::filter::ToolFilter;
use super::problem::{ConfigProblem, Position};

pub use access::{Access, IntrospectionClient, SecretReference, TokenIssuer};

/// Plexus's own settings. Everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// What tools may do.
    pub policy: Policy,
    /// How clients are served.
    pub serve: Serve,
    /// Who is let in over HTTP.
    pub access: Access,
    /// How servers are run.
    pub hub: Hub,
    /// What clients are shown, by the names that they give themselves; `*` is everybody who is not
    /// named.
    pub clients: BTreeMap<String, ClientSettings>,
}

/// What a client is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// Which tools it has.
    pub tools: ToolFilter,
    /// It is shown tools to find the others with, instead of all of them.
    pub search: bool,
}

impl ClientSettings {
    /// A client that is shown the tools that this filter lets through.
    pub fn filtered(tools: ToolFilter) -> Self {
        Self {
            tools,
            search: false,
        }
    }

    /// The same, for a client that searches for them.
    #[must_use]
    pub fn searching(mut self) -> Self {
        self.search = true;
        self
    }
}

/// What tools may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Any matching deny wins, else the first match counts, else the mode (C29).
    pub rules: Vec<Rule>,
    /// What happens to tools that no rule matches.
    pub mode: Mode,
}

/// What to do about some calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// A glob over tool names (C28).
    pub tool: String,
    /// A glob over the input; `None` for any input.
    pub pattern: Option<String>,
    /// A glob over the names of callers, `None` for everybody; a `!` in front turns it around.
    pub principal: Option<String>,
    /// What a caller's token must allow, `None` for everybody; a `!` in front turns it around. Callers
    /// who were not asked for a token are not meant in either case.
    pub scope: Option<String>,
    /// What to do.
    pub action: Action,
    /// The file it stands in.
    pub file: PathBuf,
}

impl Rule {
    /// A rule for every input of the tools that `tool` matches.
    pub fn new(tool: impl Into<String>, action: Action, file: impl Into<PathBuf>) -> Self {
        Self {
            tool: tool.into(),
            pattern: None,
            principal: None,
            scope: None,
            action,
            file: file.into(),
        }
    }
}

/// What is done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a decision is one of these")]
pub enum Action {
    /// It is made.
    Allow,
    /// The human is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// What happens to tools that no rule matches (C26), the most careful last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each has its own decision")]
pub enum Mode {
    /// They are allowed.
    DangerouslySkipPermissions,
    /// The human is asked.
    #[default]
    Default,
    /// They are refused.
    DontAsk,
}

/// How clients are served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Serve {
    /// The address for HTTP.
    pub http: Option<SocketAddr>,
    /// Whether HTTP+SSE is served as well.
    pub sse: bool,
    /// The path of the HTTP endpoint.
    pub path: Option<String>,
    /// Hosts that requests may be for, besides this machine.
    pub allow_hosts: Vec<String>,
    /// Origins whose web pages may call.
    pub allow_origins: Vec<String>,
}

/// How servers are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hub {
    /// When servers are connected.
    pub start: Start,
    /// Which built-in services are offered, in the words of the settings.
    pub builtin: Option<BuiltinWords>,
}

/// Which built-in services are offered, in the words of a file. What is built in is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltinWords {
    /// Names with commas between.
    pub words: String,
    /// The file it stands in.
    pub file: PathBuf,
}

/// When servers are connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each is a way to start")]
pub enum Start {
    /// All at once, behind the clients that are served.
    #[default]
    Eager,
    /// When they are needed; those whose tools are not known yet, at once.
    Lazy,
}

/// Reads the settings of the given files, the one with precedence first.
///
/// A file that cannot be understood may have forbidden anything, so that until it is repaired,
/// nothing is allowed that no rule allows.
pub(super) fn load(sources: &[Source], problems: &mut Vec<ConfigProblem>) -> Settings {
    let mut settings = Settings::default();
    // From the general to the specific, so that the specific is merged over it.
    for source in sources.iter().rev() {
        let read = disk::read(&source.file).and_then(|text| match text {
            Some(text) => SettingsFile::parse(&source.file, &text).map(Some),
            None => Ok(None),
        });
        match read {
            Ok(Some(file)) => file.merge_into(&mut settings, source, problems),
            Ok(None) => {}
            Err(problem) => {
                settings.policy.mode = Mode::DontAsk;
                settings.access.is_uncertain |= source.scope != Scope::Project;
                problems.push(match problem.advice {
                    Some(_) => problem,
                    None => problem.advice("until then, only tools that a rule allows can be used"),
                });
            }
        }
    }
    settings
}

/// A file, in which nothing need be said.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SettingsFile {
    policy: PolicyTable,
    serve: Option<Serve>,
    access: Option<Access>,
    hub: HubTable,
    clients: BTreeMap<String, ClientTable>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct PolicyTable {
    rules: Vec<RuleTable>,
    mode: Option<Mode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    tool: String,
    pattern: Option<String>,
    principal: Option<String>,
    scope: Option<String>,
    action: Action,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct HubTable {
    start: Option<Start>,
    builtin: Option<Names>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a list of names is expected, or \"all\", or \"none\""
)]
enum Names {
    Word(String),
    List(Vec<String>),
}

impl Names {
    fn words(self) -> String {
        match self {
            Self::Word(word) => word,
            // An empty list is a way to say so, too.
            Self::List(names) if names.is_empty() => "none".to_owned(),
            Self::List(names) => names.join(","),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ClientTable {
    tools: FilterTable,
    search: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct FilterTable {
    allow: Vec<String>,
    deny: Vec<String>,
}

impl FilterTable {
    fn compiled(&self) -> Result<ToolFilter, globset::Error> {
        ToolFilter::new(self.allow.clone(), self.deny.clone())
    }
}

impl SettingsFile {
    fn parse(file: &Path, text: &str) -> Result<Self, ConfigProblem> {
        let parsed: Self = toml::from_str(text).map_err(|error| {
            let problem = ConfigProblem::new(file, one_line(error.message()));
            match error.span() {
                Some(span) => {
                    let problem = problem.at(Position::of_offset(text, span.start));
                    match key_before(text, span.start) {
                        Some(key) => problem.key(key),
                        None => problem,
                    }
                }
                None => problem,
            }
        })?;
        for (index, rule) in parsed.policy.rules.iter().enumerate() {
            let principal = rule.principal.as_deref();
            let globs = [
                ("tool", Some(rule.tool.as_str())),
                ("pattern", rule.pattern.as_deref()),
                (
                    "principal",
                    principal.map(|glob| glob.strip_prefix('!').unwrap_or(glob)),
                ),
            ];
            for (key, glob) in globs {
                let Some(glob) = glob else { continue };
                Glob::new(glob).map_err(|error| {
                    ConfigProblem::new(file, error.to_string())
                        .key(format!("policy.rules[{index}].{key}"))
                })?;
            }
        }
        for (name, client) in &parsed.clients {
            client.tools.compiled().map_err(|error| {
                ConfigProblem::new(file, error.to_string()).key(format!("clients.{name}.tools"))
            })?;
        }
        Ok(parsed)
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The key whose value is at `offset`, if they stand on one line.
fn key_before(text: &str, offset: usize) -> Option<String> {
    let before = text.get(..offset)?;
    let line = before.rsplit('\n').next()?;
    let (assignment, _) = line.rsplit_once('=')?;
    let key = assignment
        .rsplit([',', '{', ' '])
        .find(|word| !word.is_empty())?;
    Some(key.to_owned())
}

#[cfg(test)]
mod tests;
