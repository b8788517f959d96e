//! `plexus.toml`: Plexus's own settings.

mod access;
mod address;
mod effective;
mod file;
mod limits;
mod merge;
mod permissions;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::disk;
use super::entry::{Scope, Source};
use super::filter::ToolFilter;
use super::problem::ConfigProblem;

use permissions::Permissions;

pub use access::{Access, IntrospectionClient, SecretReference, TokenIssuer};
pub use address::listen_address;
pub use effective::{EffectiveKey, effective_settings};
pub(crate) use file::SettingsFile;
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
    /// The rules of Claude Code's lists about tools of the agent itself, which the gateway does not
    /// have.
    pub agent_tools: Vec<AgentToolRule>,
    /// The decision about calls that no rule matches.
    pub mode: Mode,
}

/// A rule about a tool of an agent, such as `Bash(git log:*)` or `Read(./.env)`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct AgentToolRule {
    /// The tool; `*` stands for any characters.
    pub tool: String,
    /// What is in the brackets: a command or a path. `None` for all calls.
    pub specifier: Option<String>,
    /// The decision.
    pub action: Action,
    /// The file that contains the rule.
    pub file: PathBuf,
    /// Whether the file is one of the project.
    pub is_of_project: bool,
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

#[cfg(test)]
mod tests;
