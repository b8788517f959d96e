//! `plexus.toml`: Plexus's own settings.

mod access;
mod limits;
mod merge;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use serde::Deserialize;

use super::disk;
use super::entry::{Scope, Source};
use super::filter::ToolFilter;
use super::problem::{ConfigProblem, Position};
use super::server::MAX_STARTUP;

use limits::LimitsTable;

pub use access::{Access, IntrospectionClient, SecretReference, TokenIssuer};
pub use limits::Limits;

/// Plexus's own settings. Everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Permission policy for tools.
    pub policy: Policy,
    /// How clients connect.
    pub serve: Serve,
    /// Access control for HTTP.
    pub access: Access,
    /// How servers are started and listed.
    pub hub: Hub,
    /// Limits, timeouts and sizes.
    pub limits: Limits,
    /// Settings of clients, by the names that they give themselves; `*` is for all others.
    pub clients: BTreeMap<String, ClientSettings>,
}

/// Settings of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The tools that it sees.
    pub tools: ToolFilter,
    /// It sees tools to search with, instead of all tools.
    pub search: bool,
}

impl ClientSettings {
    /// A client that sees the tools that this filter admits.
    pub fn filtered(tools: ToolFilter) -> Self {
        Self {
            tools,
            search: false,
        }
    }

    /// The same, for a client that searches.
    #[must_use]
    pub fn searching(mut self) -> Self {
        self.search = true;
        self
    }
}

/// Permission policy for tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Any matching deny wins, else the first match decides, else the mode (C29).
    pub rules: Vec<Rule>,
    /// The decision about calls that no rule matches.
    pub mode: Mode,
}

/// A rule of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// A glob over tool names (C28).
    pub tool: String,
    /// A glob over the arguments; `None` for any arguments.
    pub pattern: Option<String>,
    /// A glob over principals, `None` for all; a leading `!` negates it.
    pub principal: Option<String>,
    /// A scope of the caller's token, `None` for all; a leading `!` negates it. Neither form
    /// matches callers that were asked for no token.
    pub scope: Option<String>,
    /// The decision.
    pub action: Action,
    /// The file that contains the rule.
    pub file: PathBuf,
}

impl Rule {
    /// A rule for all arguments of the tools that `tool` matches.
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

/// A decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "a decision is one of these")]
pub enum Action {
    /// The call is made.
    Allow,
    /// The user is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// The decision about calls that no rule matches (C26), the strictest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each has its own decision")]
pub enum Mode {
    /// They are allowed.
    DangerouslySkipPermissions,
    /// The user is asked.
    #[default]
    Default,
    /// They are refused.
    DontAsk,
}

/// How clients connect.
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
    /// Host names that requests may have, besides those of this machine.
    pub allow_hosts: Vec<String>,
    /// Origins whose web pages may send requests.
    pub allow_origins: Vec<String>,
}

/// How servers are started and listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hub {
    /// When servers are connected.
    pub start: Start,
    /// The built-in services that are offered, as written.
    pub builtin: Option<BuiltinWords>,
    /// How long lists wait for servers with an unknown offer, unless a server's definition says
    /// otherwise.
    pub startup_wait: Option<Duration>,
    /// The number of entries in one page of a list; `None` for the default.
    pub page_size: Option<NonZeroUsize>,
}

/// The built-in services that are offered, as written in a file. They are parsed elsewhere, because
/// this crate does not know them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltinWords {
    /// Names, separated by commas.
    pub words: String,
    /// The file that contains it.
    pub file: PathBuf,
}

/// When servers are connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each is a way to start")]
pub enum Start {
    /// All at start, in the background.
    #[default]
    Eager,
    /// At their first call; those whose tools are not known yet, at start.
    Lazy,
}

/// Loads the settings of the given files, the one with precedence first.
///
/// A file that cannot be parsed may have denied anything. Until it is repaired, nothing is allowed
/// that no rule allows.
pub(super) fn load(sources: &[Source], problems: &mut Vec<ConfigProblem>) -> Settings {
    let mut settings = Settings::default();
    // From the general to the specific, so that the specific file is merged over the general one.
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

/// A settings file. Every key is optional.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SettingsFile {
    policy: PolicyTable,
    serve: Option<Serve>,
    access: Option<Access>,
    hub: HubTable,
    limits: Option<LimitsTable>,
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
    /// In seconds.
    startup_wait: Option<f64>,
    page_size: Option<PageSize>,
}

/// The number of entries in one page of a list.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a whole number of entries is expected, at least 1"
)]
enum PageSize {
    Entries(NonZeroUsize),
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
            // An empty list means none as well.
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
        if let Some(seconds) = parsed.hub.startup_wait {
            startup_wait(seconds).ok_or_else(|| {
                let max = MAX_STARTUP.as_secs();
                ConfigProblem::new(file, format!("it is {seconds}"))
                    .key("hub.startup_wait")
                    .advice(format!("use a number of seconds from 0 to {max}"))
            })?;
        }
        if let Some(table) = &parsed.limits {
            table.limits(file)?;
        }
        for (name, client) in &parsed.clients {
            client.tools.compiled().map_err(|error| {
                ConfigProblem::new(file, error.to_string()).key(format!("clients.{name}.tools"))
            })?;
        }
        Ok(parsed)
    }
}

/// Converts `startup_wait`, if it is within its range.
fn startup_wait(seconds: f64) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok();
    time.filter(|time| *time <= MAX_STARTUP)
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The key of the value at `offset`, if both are on one line.
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
