//! `plexus.toml`: Plexus's own settings.

mod access;
mod address;
mod effective;
mod limits;
mod merge;
mod permissions;

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
use super::nearest::nearest;
use super::problem::{ConfigProblem, Position};
use super::server::STARTUP_TIME_MAX;

use limits::LimitsTable;
use permissions::Permissions;

pub use access::{Access, IntrospectionClient, SecretReference, TokenIssuer};
pub use address::listen_address;
pub use effective::{EffectiveKey, effective_settings};
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
    /// Any matching deny wins, else the first match decides, else the mode (C29). A rule of a
    /// first-match list decides only if it is the first match, also if it denies.
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
    /// Whether it is a rule of a first-match list.
    pub first_match: bool,
    /// Whether it is a rule of a project that allows calls, and the user has not approved it. Such a
    /// rule matches nothing.
    pub awaits_approval: bool,
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
            first_match: false,
            awaits_approval: false,
        }
    }
}

/// A decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

impl Action {
    /// Its name in a configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The decision about calls that no rule matches (C26), the strictest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each has its own decision")]
pub enum Mode {
    /// Such calls are allowed.
    DangerouslySkipPermissions,
    /// Such calls are allowed, because the client asks its user itself.
    #[default]
    Default,
    /// Such calls are refused.
    DontAsk,
}

/// How clients reach `plexus serve` over HTTP. With `--stdio` alone these keys have no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Serve {
    /// The address and port; `localhost` is 127.0.0.1. The option `--http` has precedence.
    #[serde(deserialize_with = "address::deserialize")]
    #[cfg_attr(test, schemars(with = "Option<String>", extend("default" = "127.0.0.1:4445", "examples" = ["localhost:8080"])))]
    pub http: Option<SocketAddr>,
    /// Also serve HTTP+SSE, the transport of 2024-11-05, at `/sse`.
    #[cfg_attr(test, schemars(extend("examples" = [true])))]
    pub sse: bool,
    /// The path of the endpoint. The option `--path` has precedence.
    #[cfg_attr(test, schemars(extend("default" = "/mcp", "examples" = ["/plexus"])))]
    pub path: Option<String>,
    /// Host names that requests may have, in addition to those of this machine and `--allow-host`.
    #[cfg_attr(test, schemars(extend("examples" = [["plexus.local"]])))]
    pub allow_hosts: Vec<String>,
    /// Origins whose web pages may send requests, in addition to those of this machine and
    /// `--allow-origin`.
    #[cfg_attr(test, schemars(extend("examples" = [["https://app.example"]])))]
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
    /// Whether clients are offered the tools that manage servers.
    pub management: bool,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "each is a way to start")]
pub enum Start {
    /// All servers at the start. With a client on standard input, cached servers are connected
    /// after its first list or call.
    #[default]
    Eager,
    /// Each server at its first call. Servers that are not cached yet are connected at the start.
    Lazy,
}

/// Loads the settings of the files in `sources`, and the permissions in those of `permissions`, each
/// with the file that has precedence first.
///
/// A file that cannot be parsed may have denied anything, so the settings without it allow nothing
/// that no rule allows. A gateway does not start with them, and while it runs it keeps those that it
/// had.
pub(super) fn load(
    sources: &[Source],
    permissions: &[Source],
    problems: &mut Vec<ConfigProblem>,
) -> Settings {
    let mut settings = Settings::default();
    let is_users = |source: &&Source| source.scope == Scope::User;
    let (users, projects): (Vec<_>, Vec<_>) = permissions
        .iter()
        .cloned()
        .partition(|source| is_users(&source));
    let (users, projects) = (
        Permissions::read(&users, problems),
        Permissions::read(&projects, problems),
    );
    let (own, of_project): (Vec<_>, Vec<_>) = sources.iter().partition(is_users);
    // From the general to the specific, so that the specific file is merged over the general one.
    merge(&own, &mut settings, problems);
    let allowed = users.add_behind(&mut settings.policy);
    let allowed_by_project = projects.add_in_front(&mut settings.policy);
    merge(&of_project, &mut settings, problems);
    // Claude Code's lists rank deny, ask, allow, whichever files they are in.
    settings.policy.rules.extend(allowed_by_project);
    settings.policy.rules.extend(allowed);
    settings
}

/// Merges files over the settings, the one with precedence last.
fn merge(sources: &[&Source], settings: &mut Settings, problems: &mut Vec<ConfigProblem>) {
    for source in sources.iter().rev() {
        let read = disk::read(&source.file).and_then(|text| match text {
            Some(text) => SettingsFile::parse(&source.file, &text).map(Some),
            None => Ok(None),
        });
        match read {
            Ok(Some(file)) => file.merge_into(settings, source, problems),
            Ok(None) => {}
            Err(problem) => {
                settings.policy.mode = Mode::DontAsk;
                settings.access.is_uncertain |= source.scope != Scope::Project;
                problems.push(problem.of_settings());
            }
        }
    }
}

/// A settings file. Every key is optional.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SettingsFile {
    hub: HubTable,
    serve: Option<Serve>,
    clients: BTreeMap<String, ClientTable>,
    policy: PolicyTable,
    access: Option<Access>,
    limits: Option<LimitsTable>,
}

/// Which tool calls are allowed.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct PolicyTable {
    /// The rules, in order.
    #[cfg_attr(test, schemars(extend("default" = [], "examples" = [[{"tool": "git__git_commit", "action": "ask"}]])))]
    rules: Vec<RuleTable>,
    /// The decision about calls that no rule matches.
    #[cfg_attr(test, schemars(extend("default" = "default", "examples" = ["dont-ask"])))]
    mode: Option<Mode>,
    /// How the rules of this file decide.
    #[cfg_attr(test, schemars(extend("default" = "deny-wins", "examples" = ["first-match"])))]
    order: Order,
}

/// How a list of rules decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Any matching rule that denies, else the first match.
    #[default]
    DenyWins,
    /// The first match.
    FirstMatch,
}

/// A rule of the policy.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RuleTable {
    /// A glob over the names of a tool: `git__git_commit`, `mcp__git__git_commit` or
    /// `git.git_commit`.
    #[cfg_attr(test, schemars(extend("examples" = ["git__git_commit"])))]
    tool: String,
    /// The decision about the calls that the rule matches.
    #[cfg_attr(test, schemars(extend("examples" = ["ask"])))]
    action: Action,
    /// A glob over the arguments: over each string in them and over the whole as compact JSON.
    #[cfg_attr(test, schemars(extend("x-default" = "any arguments", "examples" = ["*rm *"])))]
    pattern: Option<String>,
    /// A glob over principals, which name the callers; a leading `!` negates it.
    #[cfg_attr(test, schemars(extend("x-default" = "all callers", "examples" = ["!token:laptop"])))]
    principal: Option<String>,
    /// A scope that the caller's token must have; a leading `!` negates it. Such a rule does not
    /// match callers without a token.
    #[cfg_attr(test, schemars(extend("x-default" = "all callers", "examples" = ["!files:write"])))]
    scope: Option<String>,
}

/// How servers are started and listed.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct HubTable {
    /// When servers are connected.
    #[cfg_attr(test, schemars(extend("default" = "eager", "examples" = ["lazy"])))]
    start: Option<Start>,
    /// The built-in services: a list of names, `"all"` or `"none"`. The names are `health`, `echo`,
    /// `task`, `context`, `arbor`, `cone`, `bash`, `loopback` and `claudecode`. The option
    /// `--builtin` has precedence.
    #[cfg_attr(test, schemars(extend("default" = ["health", "echo", "task", "context"], "x-default" = "`[\"health\", \"echo\", \"task\", \"context\"]` while no server is configured, else `\"none\"`", "examples" = [["task", "cone"]])))]
    builtin: Option<Names>,
    /// Offer the tools with which a model lists, reads and watches resources of servers:
    /// `ListMcpResources`, `ReadMcpResource`, `SubscribeMcpResource`, `UnsubscribeMcpResource`,
    /// `SubscribePolling` and `UnsubscribePolling`. They are not offered while no server is
    /// configured.
    #[cfg_attr(test, schemars(extend("default" = false, "examples" = [true])))]
    management: Option<bool>,
    /// How long lists wait for servers that are not cached yet, from 0 to 3600. The key
    /// `startup_wait` of a server has precedence.
    #[cfg_attr(test, schemars(range(min = 0, max = 3600), extend("default" = 8, "x-unit" = "seconds", "examples" = [2.5])))]
    startup_wait: Option<f64>,
    /// The most entries in one page of a list, at least 1.
    #[cfg_attr(test, schemars(extend("default" = 1000, "x-unit" = "entries", "examples" = [200])))]
    page_size: Option<PageSize>,
}

/// The number of entries in one page of a list.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "a whole number of entries is expected, at least 1"
)]
enum PageSize {
    Entries(NonZeroUsize),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// What a client sees. The name of the table is the name that the client gives itself; `"*"` is for
/// all clients without a table of their own.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct ClientTable {
    tools: FilterTable,
    /// The client sees three tools to find, describe and call all others (`SearchTools`,
    /// `DescribeTool`, `CallTool`). The option `--tool-search` sets it for all clients.
    #[cfg_attr(test, schemars(extend("examples" = [true])))]
    search: bool,
}

/// The tools that a client sees.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct FilterTable {
    /// Globs over tool names. If there are any, the client sees only tools that match one of them.
    #[cfg_attr(test, schemars(extend("examples" = [["github__*"]])))]
    allow: Vec<String>,
    /// Globs over tool names. The client does not see tools that match one of them.
    #[cfg_attr(test, schemars(extend("examples" = [["*__delete_*"]])))]
    deny: Vec<String>,
}

impl FilterTable {
    fn compiled(&self) -> Result<ToolFilter, globset::Error> {
        ToolFilter::new(self.allow.clone(), self.deny.clone())
    }
}

impl SettingsFile {
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigProblem> {
        let parsed: Self = toml::from_str(text).map_err(|error| {
            let what = one_line(error.message());
            let nearest = unknown_name(&what).and_then(|(unknown, valid)| nearest(unknown, valid));
            let nearest = nearest.map(|nearest| format!("; did you mean {nearest}?"));
            let problem = ConfigProblem::new(file, what.clone() + &nearest.unwrap_or_default());
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
                let max = STARTUP_TIME_MAX.as_secs();
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
    time.filter(|time| *time <= STARTUP_TIME_MAX)
}

/// The unknown key or word that a message of serde names, and the valid ones.
fn unknown_name(message: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let named = ["unknown field `", "unknown variant `"]
        .into_iter()
        .find_map(|start| message.strip_prefix(start));
    let mut quoted = named?.split('`');
    let unknown = quoted.next()?;
    // Every second part is between two quotes: the first of them follows "expected".
    Some((unknown, quoted.skip(1).step_by(2)))
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
