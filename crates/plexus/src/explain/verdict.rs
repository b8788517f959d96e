//! The policy's decision about a call, and the rule that it comes from.

use std::fmt;

use plexus_mcp_config::{self as config, Action, Mode, Rule};
use plexus_mcp_core::{Entry, Raw};
use plexus_mcp_hub::Origin;
use plexus_mcp_hub::policy::{Decision, Policy, Reason, ToolFacts};
use serde::Serialize;

use super::ToolDescription;
use crate::session::Session;
use crate::terminal::Tone;

/// The decision about a call, and the reason.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    decision: &'static str,
    reason: String,
    /// Rules for the tool that depend on the arguments, and so may decide otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
}

impl Verdict {
    /// The decision about a call of `tool` with `arguments`.
    pub(super) fn of(session: &Session, tool: &Entry, origin: &Origin, arguments: &Raw) -> Self {
        let settings = &session.gateway.policy();
        let trusted = session
            .configured(&origin.member)
            .is_some_and(|server| server.trusted);
        let words: ToolDescription = tool.definition.decode().unwrap_or_default();
        let facts = ToolFacts::new(&tool.key, &origin.member, &origin.name)
            .annotated(words.annotations.unwrap_or_default(), trusted);
        let policy = Policy::behind_client(settings);
        let (decision, reason) = match policy.decide(&facts, arguments) {
            Decision::Deny(reason) => ("deny", reason.to_string()),
            Decision::Ask(reason) => ("ask", reason.to_string()),
            Decision::Allow => ("allow", allowing(settings, &facts, arguments)),
        };
        let depends_on = settings.rules.iter().filter(|rule| {
            let mut of_any_input = Rule::clone(rule);
            of_any_input.pattern = None;
            rule.pattern.is_some()
                && matches(&of_any_input, &facts, arguments)
                && !matches(rule, &facts, arguments)
        });
        Self {
            decision,
            reason,
            depends_on: depends_on
                .map(|rule| Reason::Rule(rule).to_string())
                .collect(),
        }
    }

    pub(super) fn tone(&self) -> Tone {
        match self.decision {
            "allow" => Tone::Good,
            "ask" => Tone::Warning,
            _ => Tone::Bad,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = match self.decision {
            "allow" => "made",
            "ask" => "asked about first",
            _ => "refused",
        };
        write!(f, "{decision}: {}", self.reason)?;
        for rule in &self.depends_on {
            write!(f, "; with other arguments, {rule} may apply")?;
        }
        Ok(())
    }
}

/// Why a call is allowed.
fn allowing(settings: &config::Policy, tool: &ToolFacts<'_>, arguments: &Raw) -> String {
    let rule = settings
        .rules
        .iter()
        .find(|rule| matches(rule, tool, arguments));
    match (rule, settings.mode) {
        (Some(rule), _) => Reason::Rule(rule).to_string(),
        (None, Mode::DangerouslySkipPermissions) => {
            "no rule matches, and the mode is \"dangerously-skip-permissions\"".to_owned()
        }
        (None, _) => "no rule matches, and the client asks its user itself".to_owned(),
    }
}

/// Whether a rule matches a call: whether it would change the decision if it were the only rule.
fn matches(rule: &Rule, tool: &ToolFacts<'_>, arguments: &Raw) -> bool {
    let mut alone = config::Policy::default();
    alone.mode = match rule.action {
        Action::Allow => Mode::DontAsk,
        Action::Ask | Action::Deny => Mode::DangerouslySkipPermissions,
    };
    alone.rules.push(rule.clone());
    let policy = Policy::new(&alone);
    let decision = policy.decide(tool, arguments);
    match rule.action {
        Action::Allow => decision == Decision::Allow,
        Action::Ask | Action::Deny => decision != Decision::Allow,
    }
}
