//! Which calls of tools are made, which are asked about, and which are refused.
//!
//! Any rule that denies a call wins; otherwise the first rule that matches it decides; otherwise
//! the mode does (C29). A rule names tools by a glob over any of their names: as shown
//! (`github__search`), as `mcp__github__search`, or as `github.search`.
//!
//! A rule's `pattern` is a glob over the arguments: over each string among them, however deep, and
//! over the whole as JSON without white space and needless escapes. A rule that asks or denies
//! matches if any of these does. A rule that allows matches only if the whole does, or every
//! string: else an argument that nobody reads would be enough to be let through. Patterns see
//! text, not commands: `git *` also matches `git log; rm -r .`. Braces and brackets of the JSON are
//! written with a backslash, as they mean something in globs.
//!
//! A rule with a `principal` is about callers of that name only, one with a `scope` about those whose
//! token allows it: `{ tool = "*__delete_*", scope = "!files:write", action = "deny" }`. The client that
//! started us, and whoever else is not asked for a token, has no scopes and is not meant by the
//! latter.
//!
//! What no rule matches is allowed [behind a client](Policy::behind_client) unless the mode says
//! otherwise: such a client sees the tools' annotations and asks its user itself, and to ask a
//! second time would only teach people to say yes. A last rule `{ tool = "*", action = "ask" }`
//! asks nevertheless. Where nobody else asks, [we do](Policy::new).
//!
//! The tools that [manage servers](crate::manage) need no permission, whatever the mode; only a rule
//! that names one as it is shown is about it (S001-58).
//!
//! The human is asked through the client. "Always" is remembered, across processes where there is a
//! place for it, and only for the same caller, rule, server and definition of the tool. Who cannot
//! be asked is refused.

mod arguments;
mod consents;
mod facts;
mod gate;
mod question;

use std::collections::HashSet;
use std::fmt;

use globset::{Glob, GlobMatcher};
use plexus_wire::Raw;

use crate::config::{self, Action, Mode, Rule};

use arguments::Arguments;

pub use facts::ToolFacts;
pub(crate) use gate::{Gate, Permit, ToolIdentity};

/// Which calls of tools are made.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<CompiledRule>,
    mode: Mode,
    /// Whether the client in front asks its user by itself.
    behind_client: bool,
    trusted: HashSet<String>,
}

/// What is done about a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a decision is one of these")]
pub enum Decision<'a> {
    /// It is made.
    Allow,
    /// The human is asked.
    Ask(Reason<'a>),
    /// It is refused.
    Deny(Reason<'a>),
}

/// Why a call is not simply made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "nothing else decides")]
pub enum Reason<'a> {
    /// This rule says so.
    Rule(&'a Rule),
    /// No rule is about it, and this mode says so.
    Mode(Mode),
}

impl Policy {
    /// The policy where nobody but us asks the human: what no rule matches is asked about, unless
    /// a server that is trusted says that it changes nothing (C26, S001-35).
    pub fn new(settings: &config::Policy) -> Self {
        Self {
            rules: settings.rules.iter().map(CompiledRule::new).collect(),
            mode: settings.mode,
            behind_client: false,
            trusted: HashSet::new(),
        }
    }

    /// The policy behind a client that asks its user by itself: what no rule matches is allowed.
    pub fn behind_client(settings: &config::Policy) -> Self {
        Self {
            behind_client: true,
            ..Self::new(settings)
        }
    }

    /// Believes what these servers say of their tools. Of others, only what speaks against a tool
    /// is believed (C26).
    #[must_use]
    pub fn trusting(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.trusted.extend(servers);
        self
    }

    /// Whether the server's annotations are believed.
    pub fn trusts(&self, server: &str) -> bool {
        self.trusted.contains(server)
    }

    /// What is done about a call of `tool` with `arguments`.
    pub fn decide(&self, tool: &ToolFacts<'_>, arguments: &Raw) -> Decision<'_> {
        let arguments = Arguments::new(arguments);
        let mut first = None;
        for rule in &self.rules {
            let undecided = first.is_none() || rule.source.action == Action::Deny;
            if undecided && rule.matches(tool, &arguments) {
                if rule.source.action == Action::Deny {
                    return Decision::Deny(Reason::Rule(&rule.source));
                }
                first = Some(&rule.source);
            }
        }
        match first {
            Some(rule) if rule.action == Action::Allow => Decision::Allow,
            Some(rule) => Decision::Ask(Reason::Rule(rule)),
            None => self.unmatched(tool),
        }
    }

    /// Whether every call is allowed.
    fn allows_everything(&self) -> bool {
        let allows_unmatched = match self.mode {
            Mode::DangerouslySkipPermissions => true,
            Mode::Default => self.behind_client,
            Mode::DontAsk => false,
        };
        allows_unmatched && self.rules.is_empty()
    }

    fn unmatched(&self, tool: &ToolFacts<'_>) -> Decision<'_> {
        if tool.is_ours() {
            return Decision::Allow;
        }
        match self.mode {
            Mode::DangerouslySkipPermissions => Decision::Allow,
            Mode::Default if self.behind_client || tool.is_harmless() => Decision::Allow,
            Mode::Default => Decision::Ask(Reason::Mode(self.mode)),
            Mode::DontAsk => Decision::Deny(Reason::Mode(self.mode)),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => {
                write!(f, "the rule {{ tool = {:?}", rule.tool)?;
                if let Some(pattern) = &rule.pattern {
                    write!(f, ", pattern = {pattern:?}")?;
                }
                if let Some(principal) = &rule.principal {
                    write!(f, ", principal = {principal:?}")?;
                }
                if let Some(scope) = &rule.scope {
                    write!(f, ", scope = {scope:?}")?;
                }
                let action = match rule.action {
                    Action::Allow => "allow",
                    Action::Ask => "ask",
                    Action::Deny => "deny",
                };
                write!(f, ", action = {action:?} }} in {}", rule.file.display())
            }
            Self::Mode(Mode::DontAsk) => f.write_str(
                "the mode \"dont-ask\", which is also in force while a plexus.toml cannot be read",
            ),
            Self::Mode(_) => f.write_str("the mode, since no rule is about this tool"),
        }
    }
}

#[derive(Debug)]
struct CompiledRule {
    source: Rule,
    /// `None` if one of them is no glob. Files with such rules are refused when they are read; a
    /// rule that was made otherwise must not let anything through by its mistake.
    globs: Option<Globs>,
}

#[derive(Debug)]
struct Globs {
    tool: GlobMatcher,
    pattern: Option<GlobMatcher>,
    principal: Option<GlobMatcher>,
}

impl CompiledRule {
    fn new(rule: &Rule) -> Self {
        Self {
            source: rule.clone(),
            globs: Globs::compile(rule).ok(),
        }
    }

    /// Whether it is about whoever calls the tool.
    fn is_about(&self, tool: &ToolFacts<'_>, globs: &Globs) -> bool {
        let named = match (&self.source.principal, &globs.principal) {
            (Some(condition), Some(glob)) => turned(condition).0 != glob.is_match(tool.principal()),
            _ => true,
        };
        let allowed = self.source.scope.as_deref().is_none_or(|condition| {
            let (is_turned, scope) = turned(condition);
            tool.scopes()
                .is_some_and(|scopes| is_turned != scopes.contains(scope))
        });
        named && allowed
    }

    fn matches(&self, tool: &ToolFacts<'_>, arguments: &Arguments<'_>) -> bool {
        let allows = self.source.action == Action::Allow;
        let Some(globs) = &self.globs else {
            return !allows;
        };
        self.is_about(tool, globs)
            && tool.names().iter().any(|name| globs.tool.is_match(name))
            && match &globs.pattern {
                None => true,
                Some(glob) if allows => arguments.all_match(glob),
                Some(glob) => arguments.any_matches(glob),
            }
    }
}

/// Whether a condition is turned around, and the rest of it.
fn turned(condition: &str) -> (bool, &str) {
    match condition.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, condition),
    }
}

impl Globs {
    fn compile(rule: &Rule) -> Result<Self, globset::Error> {
        let compile = |glob: &str| Glob::new(glob).map(|glob| glob.compile_matcher());
        Ok(Self {
            tool: compile(&rule.tool)?,
            pattern: rule.pattern.as_deref().map(compile).transpose()?,
            principal: rule
                .principal
                .as_deref()
                .map(|glob| compile(turned(glob).1))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests;
