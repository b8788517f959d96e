//! Permission checks: every tool call passes through [`Gate`].

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_core::{EventSender, Principal};
use plexus_mcp_wire::Raw;
use sha2::{Digest, Sha256};

use super::consents::{Consent, ConsentRecord, Consents};
use super::question::{self, ApprovalAnswer};
use super::{Decision, Policy, Reason, ToolFacts};
use plexus_mcp_config as config;

/// The policy in force, and the answers of users.
pub(crate) struct Gate {
    policy: RwLock<Arc<Policy>>,
    always: Consents,
}

/// The identity of a tool. When any of it changes, "always allow" no longer holds.
pub(crate) struct ToolIdentity<'a> {
    /// The fingerprint of the server's definition.
    pub(crate) server: &'a [u8; 32],
    /// The tool's definition.
    pub(crate) definition: &'a Raw,
}

/// Permission for a call, and for repeating it without asking again: as polling does, or if the
/// server is replaced before the call is sent (C27).
#[derive(Debug, Default)]
pub(crate) struct Permit {
    /// The user's consent, if the user was asked.
    consent: Option<Consent>,
}

impl Default for Gate {
    /// Allows every call.
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

    /// Stores "always allow" answers in `directory`.
    pub(crate) fn keep_consents_in(&self, directory: PathBuf) {
        self.always.keep_in(directory);
    }

    /// The policy; `None` if it allows everything.
    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        let policy = Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner));
        (!policy.allows_everything()).then_some(policy)
    }

    /// Permission for the call, or as a text for the caller, why there is none. Waits for the
    /// user's answer if there is a question; dropping the future withdraws the question.
    pub(crate) async fn permit(
        &self,
        policy: &Policy,
        tool: &ToolFacts<'_>,
        identity: &ToolIdentity<'_>,
        arguments: &Raw,
        events: &EventSender,
    ) -> Result<Permit, String> {
        let reason = match policy.decide(tool, arguments) {
            Decision::Allow => return Ok(Permit::default()),
            Decision::Deny(reason) => return Err(denied(tool, reason)),
            Decision::Ask(reason) => reason,
        };
        let principal = events.peer().principal.as_str();
        let consent = consent(principal, tool, identity, reason);
        let permit = Permit {
            consent: Some(consent),
        };
        if self.always.has(&consent) {
            return Ok(permit);
        }
        let unanswered = match question::put(tool, arguments, reason, events).await {
            Ok(Some(ApprovalAnswer::Once)) => return Ok(permit),
            Ok(Some(ApprovalAnswer::Always)) => {
                let about = ConsentRecord {
                    tool: tool.shown(),
                    server: tool.server(),
                    principal,
                    asked_because_of: &reason.to_string(),
                };
                self.always.give(consent, &about);
                return Ok(permit);
            }
            Ok(Some(ApprovalAnswer::No)) => {
                let tool = tool.shown();
                return Err(format!(
                    "{tool} was not called: the user was asked because of {reason}, and declined"
                ));
            }
            Ok(None) => "the question was closed without an answer".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(not_asked(tool, reason, &unanswered))
    }

    /// Why the user would be asked about a call; `None` if it would be made or refused without a
    /// question.
    pub(crate) fn question(
        &self,
        policy: &Policy,
        tool: &ToolFacts<'_>,
        identity: &ToolIdentity<'_>,
        arguments: &Raw,
        principal: &Principal,
    ) -> Option<String> {
        let Decision::Ask(reason) = policy.decide(tool, arguments) else {
            return None;
        };
        let needed = consent(principal.as_str(), tool, identity, reason);
        (!self.always.has(&needed)).then(|| reason.to_string())
    }

    /// Why a permitted call must not be repeated; `None` if it may. The user is not asked again.
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
    let how = match reason {
        Reason::Rule(rule) if rule.file.ends_with(config::SETTINGS_FILE) => {
            format!("put {} before that rule, or change it", allowing(tool))
        }
        Reason::Rule(_) => "change or remove that rule".to_owned(),
        Reason::Mode(_) => format!(
            "put {} into the rules under [policy] in your plexus.toml",
            allowing(tool)
        ),
    };
    format!(
        "{} was not called: the user must be asked because of {reason}, but {unanswered}; \
         to allow it without being asked, {how}",
        tool.shown()
    )
}

/// A rule that allows the tool, for the user to copy.
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
