//! The list of built-in services, and the choice of those that are offered.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A built-in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Builtin {
    /// Status of the gateway.
    Health,
    /// Returns messages, for tests of clients.
    Echo,
    /// The task list.
    Task,
    /// The memory (context graph).
    Context,
    /// Conversations as trees.
    Arbor,
    /// Conversations with language models.
    Cone,
    /// Shell commands.
    Bash,
    /// Permission requests of agents.
    Loopback,
    /// Sessions of Claude Code.
    Claudecode,
}

impl Builtin {
    /// All services, in the order in which their tools are listed.
    pub const ALL: [Self; 9] = [
        Self::Health,
        Self::Echo,
        Self::Task,
        Self::Context,
        Self::Arbor,
        Self::Cone,
        Self::Bash,
        Self::Loopback,
        Self::Claudecode,
    ];

    /// The namespace of the service, with which the names of its tools begin.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Echo => "echo",
            Self::Task => "task",
            Self::Context => "context",
            Self::Arbor => "arbor",
            Self::Cone => "cone",
            Self::Bash => "bash",
            Self::Loopback => "loopback",
            Self::Claudecode => "claudecode",
        }
    }

    /// The purpose of the service, as a phrase in the instructions for models.
    pub(crate) const fn purpose(self) -> &'static str {
        match self {
            Self::Health => "reports the status of the gateway",
            Self::Echo => "returns messages",
            Self::Task => "keeps a task list, which several agents can share",
            Self::Context => "stores texts and searches them",
            Self::Arbor => "keeps conversations as trees",
            Self::Cone => "keeps conversations with language models",
            Self::Bash => "runs shell commands",
            Self::Loopback => "answers permission requests of agents",
            Self::Claudecode => "runs Claude Code in sessions",
        }
    }
}

/// A selection of built-in services, written as their names separated by commas, or as `all` or
/// `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltinSelection(BTreeSet<Builtin>);

/// The text names no built-in service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a built-in service; name some of {all}, or all or none", all = names(Builtin::ALL))]
pub struct UnknownBuiltin(String);

impl BuiltinSelection {
    /// Every service.
    pub fn all() -> Self {
        Self(Builtin::ALL.into())
    }

    /// No service.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// The default: health, echo, task and context. The others would only lengthen the list of
    /// tools for most clients.
    pub fn usual() -> Self {
        Self(
            [
                Builtin::Health,
                Builtin::Echo,
                Builtin::Task,
                Builtin::Context,
            ]
            .into(),
        )
    }

    /// Adds services to the selection.
    #[must_use]
    pub fn with(mut self, services: &[Builtin]) -> Self {
        self.0.extend(services);
        self
    }

    /// The selected services, in order.
    pub fn services(&self) -> impl Iterator<Item = Builtin> {
        self.0.iter().copied()
    }

    /// Whether the service is selected.
    pub fn has(&self, service: Builtin) -> bool {
        self.0.contains(&service)
    }
}

impl FromStr for BuiltinSelection {
    type Err = UnknownBuiltin;

    fn from_str(text: &str) -> Result<Self, UnknownBuiltin> {
        let words: Vec<_> = text.split(',').map(str::trim).collect();
        match words[..] {
            ["all"] => return Ok(Self::all()),
            ["none"] => return Ok(Self::none()),
            _ => {}
        }
        let service = |word: &&str| {
            let mut all = Builtin::ALL.into_iter();
            let named = all.find(|service| service.as_str() == *word);
            named.ok_or_else(|| UnknownBuiltin((*word).to_owned()))
        };
        Ok(Self(words.iter().map(service).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for BuiltinSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => f.write_str("none"),
            _ => f.write_str(&names(self.services()).replace(' ', "")),
        }
    }
}

fn names(services: impl IntoIterator<Item = Builtin>) -> String {
    let names: Vec<_> = services.into_iter().map(Builtin::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_list_or_a_word() {
        let usual: BuiltinSelection = " task,health , echo,context".parse().unwrap();
        assert_eq!(usual, BuiltinSelection::usual());
        assert_eq!("all".parse(), Ok(BuiltinSelection::all()));
        let none: BuiltinSelection = "none".parse().unwrap();
        assert!(Builtin::ALL.iter().all(|service| !none.has(*service)));
        for choice in [usual, none, BuiltinSelection::all()] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for wrong in ["", "task,", "tasks", "all,task"] {
            assert!(wrong.parse::<BuiltinSelection>().is_err(), "{wrong}");
        }
        let said = "tasks".parse::<BuiltinSelection>().unwrap_err().to_string();
        assert!(
            said.starts_with("\"tasks\" is not a built-in service; name some of health, echo, "),
            "{said}"
        );
    }
}
