//! The form of `plexus.toml`, and the problems of a file that has another.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use globset::Glob;
use serde::Deserialize;

use super::limits::LimitsTable;
use super::{Access, Action, Mode, Serve, Start};
use crate::filter::ToolFilter;
use crate::nearest::nearest;
use crate::problem::{ConfigProblem, Position};
use crate::server::STARTUP_TIME_MAX;

/// A settings file. Every key is optional.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SettingsFile {
    pub(super) hub: HubTable,
    pub(super) serve: Option<Serve>,
    pub(super) clients: BTreeMap<String, ClientTable>,
    pub(super) policy: PolicyTable,
    pub(super) access: Option<Access>,
    pub(super) limits: Option<LimitsTable>,
}

/// Which tool calls are allowed.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct PolicyTable {
    /// The rules, in order.
    #[cfg_attr(test, schemars(extend("default" = [], "examples" = [[{"tool": "git__git_commit", "action": "ask"}]])))]
    pub(super) rules: Vec<RuleTable>,
    /// The decision about calls that no rule matches.
    #[cfg_attr(test, schemars(extend("default" = "default", "examples" = ["dont-ask"])))]
    pub(super) mode: Option<Mode>,
    /// How the rules of this file decide.
    #[cfg_attr(test, schemars(extend("default" = "deny-wins", "examples" = ["first-match"])))]
    pub(super) order: Order,
}

/// How a list of rules decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
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
pub(super) struct RuleTable {
    /// A glob over the names of a tool: `git__git_commit`, `mcp__git__git_commit` or
    /// `git.git_commit`.
    #[cfg_attr(test, schemars(extend("examples" = ["git__git_commit"])))]
    pub(super) tool: String,
    /// The decision about the calls that the rule matches.
    #[cfg_attr(test, schemars(extend("examples" = ["ask"])))]
    pub(super) action: Action,
    /// A glob over the arguments: over each string in them and over the whole as compact JSON.
    #[cfg_attr(test, schemars(extend("x-default" = "any arguments", "examples" = ["*rm *"])))]
    pub(super) pattern: Option<String>,
    /// A glob over principals, which name the callers; a leading `!` negates it.
    #[cfg_attr(test, schemars(extend("x-default" = "all callers", "examples" = ["!token:laptop"])))]
    pub(super) principal: Option<String>,
    /// A scope that the caller's token must have; a leading `!` negates it. Such a rule does not
    /// match callers without a token.
    #[cfg_attr(test, schemars(extend("x-default" = "all callers", "examples" = ["!files:write"])))]
    pub(super) scope: Option<String>,
}

/// How servers are started and listed.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct HubTable {
    /// When servers are connected.
    #[cfg_attr(test, schemars(extend("default" = "eager", "examples" = ["lazy"])))]
    pub(super) start: Option<Start>,
    /// The built-in services: a list of names, `"all"` or `"none"`. The names are `health`, `echo`,
    /// `task`, `context`, `arbor`, `cone`, `bash`, `loopback` and `claudecode`. The option
    /// `--builtin` has precedence.
    #[cfg_attr(test, schemars(extend("default" = ["health", "echo", "task", "context"], "x-default" = "`[\"health\", \"echo\", \"task\", \"context\"]` while no server is configured, else `\"none\"`", "examples" = [["task", "cone"]])))]
    pub(super) builtin: Option<Names>,
    /// Offer the tools with which a model lists, reads and watches resources of servers:
    /// `ListMcpResources`, `ReadMcpResource`, `SubscribeMcpResource`, `UnsubscribeMcpResource`,
    /// `SubscribePolling` and `UnsubscribePolling`. They are not offered while no server is
    /// configured.
    #[cfg_attr(test, schemars(extend("default" = false, "examples" = [true])))]
    pub(super) management: Option<bool>,
    /// How long lists wait for servers that are not cached yet, from 0 to 3600. The key
    /// `startup_wait` of a server has precedence.
    #[cfg_attr(test, schemars(range(min = 0, max = 3600), extend("default" = 8, "x-unit" = "seconds", "examples" = [2.5])))]
    pub(super) startup_wait: Option<f64>,
    /// The most entries in one page of a list, at least 1.
    #[cfg_attr(test, schemars(extend("default" = 1000, "x-unit" = "entries", "examples" = [200])))]
    pub(super) page_size: Option<PageSize>,
}

/// The number of entries in one page of a list.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "a whole number of entries is expected, at least 1"
)]
pub(super) enum PageSize {
    Entries(NonZeroUsize),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "a list of names is expected, or \"all\", or \"none\""
)]
pub(super) enum Names {
    Word(String),
    List(Vec<String>),
}

impl Names {
    pub(super) fn words(self) -> String {
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
pub(super) struct ClientTable {
    pub(super) tools: FilterTable,
    /// The client sees three tools to find, describe and call all others (`SearchTools`,
    /// `DescribeTool`, `CallTool`). The option `--tool-search` sets it for all clients.
    #[cfg_attr(test, schemars(extend("examples" = [true])))]
    pub(super) search: bool,
}

/// The tools that a client sees.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct FilterTable {
    /// Globs over tool names. If there are any, the client sees only tools that match one of them.
    #[cfg_attr(test, schemars(extend("examples" = [["github__*"]])))]
    pub(super) allow: Vec<String>,
    /// Globs over tool names. The client does not see tools that match one of them.
    #[cfg_attr(test, schemars(extend("examples" = [["*__delete_*"]])))]
    pub(super) deny: Vec<String>,
}

impl FilterTable {
    pub(super) fn compiled(&self) -> Result<ToolFilter, globset::Error> {
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
pub(super) fn startup_wait(seconds: f64) -> Option<Duration> {
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
