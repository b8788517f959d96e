//! The place that every call of a tool must pass.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_service::{EventSender, Principal};
use plexus_wire::Raw;
use sha2::{Digest, Sha256};

use super::consents::{About, Consent, Consents};
use super::question::{self, Answer};
use super::{Decision, Policy, Reason, ToolFacts};
use crate::config;

/// The policy in force, and what the humans said.
pub(crate) struct Gate {
    policy: RwLock<Arc<Policy>>,
    always: Consents,
}

/// What must not change for an "always" to hold.
pub(crate) struct ToolIdentity<'a> {
    /// Changes with the server's own definition.
    pub(crate) server: &'a [u8; 32],
    /// The tool's.
    pub(crate) definition: &'a Raw,
}

/// Permission for calls that are made again and again without asking, given when the first was
/// made (C27).
#[derive(Debug, Default)]
pub(crate) struct Permit {
    /// What the human said yes to, if anybody was asked.
    consent: Option<Consent>,
}

impl Permit {
    /// Permission for a call that has just been let through.
    pub(crate) fn of(
        policy: &Policy,
        tool: &ToolFacts<'_>,
        identity: &ToolIdentity<'_>,
        arguments: &Raw,
        principal: &Principal,
    ) -> Self {
        let consent = match policy.decide(tool, arguments) {
            Decision::Ask(reason) => Some(consent(principal.as_str(), tool, identity, reason)),
            Decision::Allow | Decision::Deny(_) => None,
        };
        Self { consent }
    }
}

impl Default for Gate {
    /// Lets everything pass.
    fn default() -> Self {
        let everything = Policy::behind_client(&config::Policy::default());
        Self {
            policy: RwLock::new(Arc::new(everything)),
            always: Consents::default(),
        }
    }
}

impl Gate {
    pub(crate) fn set(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Keeps what humans allow for always in `directory`.
    pub(crate) fn keep_consents_in(&self, directory: PathBuf) {
        self.always.keep_in(directory);
    }

    /// The policy; `None` if it lets everything pass.
    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        let policy = Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner));
        (!policy.allows_everything()).then_some(policy)
    }

    /// Why the call must not be made, in words for the caller; `None` if it may. Waits for the
    /// human if it must; dropping the future withdraws the question.
    pub(crate) async fn refusal(
        &self,
        policy: &Policy,
        tool: &ToolFacts<'_>,
        identity: &ToolIdentity<'_>,
        arguments: &Raw,
        events: &EventSender,
    ) -> Option<String> {
        let reason = match policy.decide(tool, arguments) {
            Decision::Allow => return None,
            Decision::Deny(reason) => return Some(denied(tool, reason)),
            Decision::Ask(reason) => reason,
        };
        let principal = events.peer().principal.as_str();
        let consent = consent(principal, tool, identity, reason);
        if self.always.has(&consent) {
            return None;
        }
        let unanswered = match question::put(tool, arguments, reason, events).await {
            Ok(Some(Answer::Once)) => return None,
            Ok(Some(Answer::Always)) => {
                let about = About {
                    tool: tool.shown(),
                    server: tool.server(),
                    principal,
                    asked_because_of: &reason.to_string(),
                };
                self.always.give(consent, &about);
                return None;
            }
            Ok(Some(Answer::No)) => {
                let tool = tool.shown();
                return Some(format!(
                    "{tool} was not called: the user was asked because of {reason}, and said no"
                ));
            }
            Ok(None) => "the question was closed without an answer".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(not_asked(tool, reason, &unanswered))
    }

    /// Why a call that was permitted must not be made once more; `None` if it may. Nobody is asked.
    pub(crate) fn revoked(
        &self,
        permit: &Permit,
        policy: &Policy,
        tool: &ToolFacts<'_>,
        identity: &ToolIdentity<'_>,
        arguments: &Raw,
        principal: &Principal,
    ) -> Option<String> {
        let reason = match policy.decide(tool, arguments) {
            Decision::Allow => return None,
            Decision::Deny(reason) => return Some(denied(tool, reason)),
            Decision::Ask(reason) => reason,
        };
        let needed = consent(principal.as_str(), tool, identity, reason);
        if permit.consent == Some(needed) || self.always.has(&needed) {
            return None;
        }
        Some(format!(
            "{} was not called: the user must be asked again because of {reason}",
            tool.shown()
        ))
    }
}

fn denied(tool: &ToolFacts<'_>, reason: Reason<'_>) -> String {
    let how = match reason {
        Reason::Rule(_) => "change or remove that rule".to_owned(),
        Reason::Mode(_) => format!(
            "add {} to the rules under [policy] in your plexus.toml",
            allowing(tool)
        ),
    };
    let name = tool.shown();
    format!("{name} was not called: denied by {reason}; to allow it, {how}")
}

fn not_asked(tool: &ToolFacts<'_>, reason: Reason<'_>, unanswered: &str) -> String {
    let place = match reason {
        Reason::Rule(_) => "before that rule, or change it",
        Reason::Mode(_) => "into the rules under [policy] in your plexus.toml",
    };
    format!(
        "{} was not called: the user must be asked because of {reason}, but {unanswered}; \
         to allow it without being asked, put {} {place}",
        tool.shown(),
        allowing(tool)
    )
}

/// A rule that allows the tool.
fn allowing(tool: &ToolFacts<'_>) -> String {
    format!("{{ tool = {:?}, action = \"allow\" }}", tool.shown())
}

fn consent(
    principal: &str,
    tool: &ToolFacts<'_>,
    identity: &ToolIdentity<'_>,
    reason: Reason<'_>,
) -> Consent {
    let mut hasher = Sha256::new();
    let reason = reason.to_string();
    for part in [
        principal.as_bytes(),
        tool.server().as_bytes(),
        identity.server,
        identity.definition.as_bytes(),
        reason.as_bytes(),
    ] {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
