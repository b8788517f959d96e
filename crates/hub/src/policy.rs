//! Permission policy: which tool calls are allowed, which need the user's consent, and which are
//! denied.
//!
//! Any rule that denies a call wins; otherwise the first rule that matches decides; otherwise the
//! mode does (C29). In a first-match list, a rule that denies has no precedence. A rule names tools by a glob over any of their names: as shown
//! (`github__search`), as `mcp__github__search`, or as `github.search`.
//!
//! A rule's `pattern` is a glob over the arguments: over each string in them, at any depth, and
//! over the whole as compact JSON without needless escapes. A rule that asks or denies matches if
//! any of these does. A rule that allows matches only if the whole does, or every string: otherwise
//! an unused argument would be enough to be allowed. Patterns match text, not commands: `git *`
//! also matches `git log; rm -r .`. Braces and brackets of the JSON are escaped with a backslash,
//! because globs use them.
//!
//! A rule with a `principal` applies to callers of that name only, one with a `scope` to callers
//! whose token has that scope: `{ tool = "*__delete_*", scope = "!files:write", action = "deny" }`.
//! Callers that are not asked for a token, such as the client that started Plexus, have no scopes,
//! and rules with a `scope` do not apply to them.
//!
//! A call that no rule matches is allowed [behind a client](Policy::behind_client) unless the mode
//! says otherwise: such a client sees the tools' annotations and asks its user itself, and asking
//! twice would only train users to agree. A last rule `{ tool = "*", action = "ask" }` asks
//! nevertheless. Without such a client, [Plexus asks](Policy::new).
//!
//! The tools that [manage servers](crate::manage) need no permission in any mode; only a
//! rule with their shown name applies to them (S001-58).
//!
//! The user is asked through the client. "Always" is stored, across processes if there is a
//! directory for it, and holds only for the same caller, rule, server and definition of the tool.
//! If the user cannot be asked, the call is denied.

mod applicable;
mod arguments;
mod consents;
mod facts;
mod gate;
mod question;

use std::collections::HashSet;
use std::fmt;

use globset::{Glob, GlobMatcher};
use plexus_mcp_wire::Raw;

use plexus_mcp_config::{self as config, Action, Mode, Rule};

use applicable::ApplicableRules;
use arguments::Arguments;

pub use consents::{Consent, ConsentRecord, Consents};
pub use facts::ToolFacts;
pub(crate) use gate::{Gate, Permit, ToolIdentity};

/// Decides which tool calls are allowed.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<CompiledRule>,
    applicable: ApplicableRules,
    mode: Mode,
    /// Whether the client asks its user itself.
    behind_client: bool,
    trusted: HashSet<String>,
}

/// The decision about a call, and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a decision is one of these")]
pub enum Decision<'a> {
    /// The call is made.
    Allow,
    /// The user is asked.
    Ask(Reason<'a>),
    /// The call is refused.
    Deny(Reason<'a>),
}

/// Why a call is not simply allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "nothing else decides")]
pub enum Reason<'a> {
    /// This rule.
    Rule(&'a Rule),
    /// This mode, because no rule matches.
    Mode(Mode),
}

impl Policy {
    /// The policy where only Plexus asks the user: calls that no rule matches are asked about,
    /// unless a trusted server declares the tool read-only (C26, S001-35).
    pub fn new(settings: &config::Policy) -> Self {
        Self {
            rules: settings
                .rules
                .iter()
                .filter(|rule| !rule.awaits_approval)
                .map(CompiledRule::new)
                .collect(),
            applicable: ApplicableRules::default(),
            mode: settings.mode,
            behind_client: false,
            trusted: HashSet::new(),
        }
    }

    /// The policy behind a client that asks its user itself: calls that no rule matches are
    /// allowed.
    pub fn behind_client(settings: &config::Policy) -> Self {
        Self {
            behind_client: true,
            ..Self::new(settings)
        }
    }

    /// Trusts the annotations of these servers. Of other servers, only warnings are believed (C26).
    #[must_use]
    pub fn trusting(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.trusted.extend(servers);
        self
    }

    /// Whether the server's annotations are trusted.
    pub fn trusts(&self, server: &str) -> bool {
        self.trusted.contains(server)
    }

    /// Decides about a call of `tool` with `arguments`.
    pub fn decide(&self, tool: &ToolFacts<'_>, arguments: &Raw) -> Decision<'_> {
        self.decide_by_rules(tool, arguments)
            .unwrap_or_else(|| self.unmatched(tool))
    }

    /// Decides about a call by the rules alone; `None` if no rule matches, so that a mode decides.
    pub fn decide_by_rules(&self, tool: &ToolFacts<'_>, arguments: &Raw) -> Option<Decision<'_>> {
        let arguments = Arguments::new(arguments);
        let mut first = None;
        let applicable = self.applicable.of(&self.rules, tool);
        for rule in applicable.iter().filter_map(|&rule| self.rules.get(rule)) {
            let undecided = first.is_none() || rule.wins();
            if undecided && rule.matches_arguments(&arguments) {
                if rule.source.action == Action::Deny {
                    return Some(Decision::Deny(Reason::Rule(&rule.source)));
                }
                first = Some(&rule.source);
            }
        }
        first.map(|rule| match rule.action {
            Action::Allow => Decision::Allow,
            Action::Ask | Action::Deny => Decision::Ask(Reason::Rule(rule)),
        })
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
                let action = rule.action.as_str();
                write!(f, ", action = {action:?} }} in {}", rule.file.display())
            }
            Self::Mode(Mode::DontAsk) => f.write_str(
                "the mode \"dont-ask\", which is also in force while a file with rules cannot be read",
            ),
            Self::Mode(_) => f.write_str("the mode, since no rule matches this tool"),
        }
    }
}

#[derive(Debug)]
struct CompiledRule {
    source: Rule,
    /// `None` if one of them is not a valid glob. Files with such rules are rejected when they are
    /// read; a rule made in another way must not allow anything by mistake.
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

    /// Whether the rule decides wherever it stands in the list.
    fn wins(&self) -> bool {
        self.source.action == Action::Deny && !self.source.first_match
    }

    /// Whether the rule applies to the caller.
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

    /// Whether the rule matches calls of `tool` with some arguments.
    fn can_match(&self, tool: &ToolFacts<'_>) -> bool {
        let Some(globs) = &self.globs else {
            return self.source.action != Action::Allow;
        };
        self.is_about(tool, globs) && tool.names().iter().any(|name| globs.tool.is_match(name))
    }

    /// Whether it depends on the arguments if the rule matches.
    fn has_pattern(&self) -> bool {
        self.globs
            .as_ref()
            .is_some_and(|globs| globs.pattern.is_some())
    }

    /// Whether the rule, which [can match](Self::can_match), does so with these arguments.
    fn matches_arguments(&self, arguments: &Arguments<'_>) -> bool {
        match self.globs.as_ref().and_then(|globs| globs.pattern.as_ref()) {
            None => true,
            Some(glob) if self.source.action == Action::Allow => arguments.all_match(glob),
            Some(glob) => arguments.any_matches(glob),
        }
    }
}

/// Whether a condition is negated, and the rest of it.
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
