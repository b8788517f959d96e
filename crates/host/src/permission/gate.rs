//! [`Permissions`]: decides about each call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use plexus_mcp_config::{self as config, Action, AgentToolRule};
use plexus_mcp_hub::policy::{Consent, ConsentRecord, Consents, Decision, Policy, ToolFacts};
use plexus_mcp_wire::Raw;
use sha2::{Digest, Sha256};

use super::agent_rules::{AgentRules, RuleDecision};
use super::answer::{PermissionAnswer, PermissionQuestion, Prompter};
use super::mode::{Mode, Verdict};
use super::subject::Subject;
use crate::observer::AgentId;

/// A call that wants permission.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// What is called.
    pub subject: Subject,
    /// Whether the call needs permission. If not, only a rule that denies it matters.
    pub is_required: bool,
    /// The input.
    pub input: Raw,
    /// The agent that calls.
    pub agent: AgentId,
}

/// The rules and the mode in force, and the answers of the user.
pub struct Permissions {
    policy: RwLock<Arc<Policy>>,
    agent_rules: RwLock<Arc<AgentRules>>,
    mode: Mutex<Mode>,
    /// Whether the settings have the mode `dont-ask`, which is also in force while rules cannot be
    /// read. It has precedence over every other mode.
    never_asks: bool,
    prompter: Option<Arc<dyn Prompter>>,
    /// The user answers one question at a time.
    asking: tokio::sync::Mutex<()>,
    always: Consents,
}

impl Permissions {
    /// Permissions by these rules and this mode. Without a prompter, calls that the user would be
    /// asked about are refused (C26).
    pub fn new(rules: &config::Policy, mode: Mode, prompter: Option<Arc<dyn Prompter>>) -> Self {
        Self {
            policy: RwLock::new(Arc::new(Policy::new(rules))),
            agent_rules: RwLock::default(),
            mode: Mutex::new(mode),
            never_asks: rules.mode == config::Mode::DontAsk,
            prompter,
            asking: tokio::sync::Mutex::default(),
            always: Consents::default(),
        }
    }

    /// Stores "always" answers in `directory`, and uses those that are already there.
    pub fn keep_consents_in(&self, directory: impl Into<PathBuf>) {
        self.always.keep_in(directory.into());
    }

    /// Adds the rules about tools of the host, for an agent that works in `root` and whose user has
    /// this home directory.
    pub fn set_agent_rules(&self, rules: &[AgentToolRule], root: &Path, home: Option<&Path>) {
        let rules = Arc::new(AgentRules::new(rules, root, home));
        *self
            .agent_rules
            .write()
            .unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Whether a rule denies reading this file, so that searches pass over it.
    pub fn hides(&self, path: &Path) -> bool {
        self.agent_rules().hides(path)
    }

    fn agent_rules(&self) -> Arc<AgentRules> {
        let rules = self.agent_rules.read();
        Arc::clone(&rules.unwrap_or_else(PoisonError::into_inner))
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        if self.never_asks {
            return Mode::DontAsk;
        }
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the mode.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Checks a call, and asks the user if necessary. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// The call is refused. The text tells the model and the user why.
    pub async fn check(&self, request: PermissionRequest) -> Result<(), String> {
        let reason = match self.decide(&request) {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) => reason,
            Err(refusal) => return Err(refusal),
        };
        let subject = &request.subject;
        if self.has_consent(subject) {
            return Ok(());
        }
        let Some(prompter) = &self.prompter else {
            return Err(not_asked(subject, &reason));
        };
        let _turn = self.asking.lock().await;
        // Another agent's question may have been answered with "always" meanwhile.
        if self.has_consent(subject) {
            return Ok(());
        }
        let question = PermissionQuestion {
            subject: subject.clone(),
            input: request.input.clone(),
            agent: request.agent.clone(),
            reason: reason.clone(),
        };
        match prompter.ask(question).await {
            Some(PermissionAnswer::Once) => Ok(()),
            Some(PermissionAnswer::AlwaysTool) => {
                self.give(&consent_for_tool(subject), subject, &reason);
                Ok(())
            }
            Some(PermissionAnswer::AlwaysServer) => {
                self.give(&consent_for_server(subject), subject, &reason);
                Ok(())
            }
            Some(PermissionAnswer::No(because)) => Err(declined(subject, because.as_deref())),
            None => Err(not_asked(subject, &reason)),
        }
    }

    /// Why the user must be asked, or `None` if the call is made without a question; the error says
    /// why it is refused.
    fn decide(&self, request: &PermissionRequest) -> Result<Option<String>, String> {
        let subject = &request.subject;
        let policy = Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner));
        let mode = self.mode();
        if let Some(through) = &subject.through
            && let Some(Decision::Deny(reason)) =
                policy.decide_by_rules(&ToolFacts::of_program(through), &request.input)
        {
            return Err(denied(through, &reason.to_string()));
        }
        let of_agent = subject.owner.is_none().then(|| self.agent_rules());
        let of_agent = of_agent.and_then(|rules| rules.decide(&subject.tool, &request.input));
        if let Some(RuleDecision {
            action: Action::Deny,
            rule,
        }) = &of_agent
        {
            return Err(denied(&subject.tool, rule));
        }
        match policy.decide_by_rules(&subject.facts(), &request.input) {
            Some(Decision::Deny(reason)) => Err(denied(&subject.tool, &reason.to_string())),
            _ if !request.is_required || mode == Mode::BypassPermissions => Ok(None),
            Some(Decision::Allow) => Ok(None),
            Some(Decision::Ask(reason)) if mode == Mode::DontAsk => Err(format!(
                "{} was not called: {reason} says that the user is asked, and in the permission \
                 mode dontAsk the user is not asked",
                subject.tool
            )),
            Some(Decision::Ask(reason)) => Ok(Some(reason.to_string())),
            None if let Some(decision) = of_agent => match decision.action {
                Action::Allow => Ok(None),
                _ if mode == Mode::DontAsk => Err(refused_by_mode(subject, mode)),
                _ => Ok(Some(decision.rule)),
            },
            None => match mode.verdict(subject.risk) {
                Verdict::Allow => Ok(None),
                Verdict::Ask => Ok(Some(format!("the permission mode {mode}"))),
                Verdict::Deny => Err(refused_by_mode(subject, mode)),
            },
        }
    }

    fn has_consent(&self, subject: &Subject) -> bool {
        let by_server = subject.owner.is_some() && self.always.has(&consent_for_server(subject));
        by_server || self.always.has(&consent_for_tool(subject))
    }

    fn give(&self, consent: &Consent, subject: &Subject, reason: &str) {
        let server = subject.owner.as_ref().map(|owner| owner.server.as_str());
        let record = ConsentRecord {
            tool: &subject.tool,
            server: server.unwrap_or("the agent host"),
            principal: "",
            asked_because_of: reason,
        };
        self.always.give(*consent, &record);
    }
}

impl std::fmt::Debug for Permissions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permissions")
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}

fn consent_for_tool(subject: &Subject) -> Consent {
    let server = subject.owner.as_ref().map_or("", |owner| &owner.server);
    let parts: [&[u8]; 4] = [
        b"host tool",
        server.as_bytes(),
        subject.tool.as_bytes(),
        &subject.digest,
    ];
    hash(&parts)
}

/// A tool of the host is a server of its own.
fn consent_for_server(subject: &Subject) -> Consent {
    match &subject.owner {
        Some(owner) => hash(&[b"host server", owner.server.as_bytes()]),
        None => consent_for_tool(subject),
    }
}

fn hash(parts: &[&[u8]]) -> Consent {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn denied(tool: &str, rule: &str) -> String {
    format!("{tool} was not called: denied by {rule}; the user can change or remove that rule")
}

fn declined(subject: &Subject, because: Option<&str>) -> String {
    let tool = &subject.tool;
    match because {
        Some(because) => format!("{tool} was not called: the user declined and said: {because}"),
        None => format!("{tool} was not called: the user declined"),
    }
}

fn refused_by_mode(subject: &Subject, mode: Mode) -> String {
    let tool = &subject.tool;
    match mode {
        Mode::Plan => format!(
            "{tool} was not called: in the permission mode plan nothing is changed; describe what \
             you would do"
        ),
        _ => format!(
            "{tool} was not called: no rule allows it, and the permission mode {mode} refuses what \
             no rule allows; {}",
            allowing(subject)
        ),
    }
}

fn not_asked(subject: &Subject, reason: &str) -> String {
    format!(
        "{} was not called: the user must be asked because of {reason}, and cannot be asked here; {}",
        subject.tool,
        allowing(subject)
    )
}

/// The rule and the flag that allow the tool, for the user to copy.
fn allowing(subject: &Subject) -> String {
    let tool = &subject.tool;
    format!(
        "the user can allow it with --allowed-tools {tool} or the rule {{\"tool\": {tool:?}, \
         \"action\": \"allow\"}} in the permissions of .claude/settings.json"
    )
}
