//! Questions to the user whether a call may be made.

use plexus_mcp_core::Boxed;
use plexus_mcp_wire::Raw;

use super::subject::Subject;
use crate::observer::AgentId;

/// A question to the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionQuestion {
    /// What is called.
    pub subject: Subject,
    /// The input of the call.
    pub input: Raw,
    /// The agent that calls.
    pub agent: AgentId,
    /// Why the user is asked: a rule or the mode.
    pub reason: String,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a dialog must offer all of them")]
pub enum PermissionAnswer {
    /// This call.
    Once,
    /// This call, and all further ones of the tool while its definition stays the same.
    AlwaysTool,
    /// This call, and all further ones of tools of the server.
    AlwaysServer,
    /// Not this call; with a reason for the model if the user gave one.
    No(Option<String>),
}

/// Asks the user for permission. Questions of agents that run at the same time are put one after the
/// other.
pub trait Prompter: Send + Sync + 'static {
    /// Asks; `None` if the user cannot be asked any more. Dropping the future withdraws the
    /// question.
    fn ask(&self, question: PermissionQuestion) -> Boxed<Option<PermissionAnswer>>;
}
