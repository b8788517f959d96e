//! The permission modes, and the table of what each decides by risk.

use std::fmt;
use std::str::FromStr;

/// What happens to calls that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "users know each of them")]
pub enum Mode {
    /// Calls of low risk are made, and the user is asked about the others.
    #[default]
    Default,
    /// Edits of files are made as well.
    AcceptEdits,
    /// Nothing is changed: calls of more than low risk are refused.
    Plan,
    /// The user is never asked: what no rule allows is refused.
    DontAsk,
    /// All calls are made that no rule denies.
    BypassPermissions,
}

/// The risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the table has a column for each")]
pub enum Risk {
    /// It reads.
    Low,
    /// It changes files, in a way that the user sees.
    Medium,
    /// It may do anything.
    High,
}

/// What a mode decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a decision is one of these")]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// The user is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// What each mode decides about calls of low, medium and high risk.
const DECISIONS: [(Mode, [Verdict; 3]); 5] = {
    use Verdict::{Allow, Ask, Deny};
    [
        (Mode::Default, [Allow, Ask, Ask]),
        (Mode::AcceptEdits, [Allow, Allow, Ask]),
        (Mode::Plan, [Allow, Deny, Deny]),
        (Mode::DontAsk, [Deny, Deny, Deny]),
        (Mode::BypassPermissions, [Allow, Allow, Allow]),
    ]
};

const NAMES: [(Mode, &str); 5] = [
    (Mode::Default, "default"),
    (Mode::AcceptEdits, "acceptEdits"),
    (Mode::Plan, "plan"),
    (Mode::DontAsk, "dontAsk"),
    (Mode::BypassPermissions, "bypassPermissions"),
];

impl Mode {
    /// What the mode decides about a call that no rule matches.
    pub fn verdict(self, risk: Risk) -> Verdict {
        let row = DECISIONS.iter().find(|(mode, _)| *mode == self);
        let verdict = row.and_then(|(_, verdicts)| verdicts.get(risk as usize));
        verdict.copied().unwrap_or(Verdict::Deny)
    }

    /// The name that users write.
    pub fn as_str(self) -> &'static str {
        let row = NAMES.iter().find(|(mode, _)| *mode == self);
        row.map_or("default", |(_, name)| name)
    }

    /// All names, for help texts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, name)| *name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no mode of this name.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no permission mode {name:?}; the modes are {known}", name = .0, known = names())]
pub struct UnknownMode(String);

fn names() -> String {
    Mode::names().collect::<Vec<_>>().join(", ")
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let row = NAMES.iter().find(|(_, known)| *known == name);
        row.map(|(mode, _)| *mode)
            .ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C26, S004-07: each cell of the table.
    #[test]
    fn each_mode_decides_by_risk() {
        use Verdict::{Allow, Ask, Deny};
        let cells =
            |mode: Mode| [Risk::Low, Risk::Medium, Risk::High].map(|risk| mode.verdict(risk));
        assert_eq!(cells(Mode::Default), [Allow, Ask, Ask]);
        assert_eq!(cells(Mode::AcceptEdits), [Allow, Allow, Ask]);
        assert_eq!(cells(Mode::Plan), [Allow, Deny, Deny]);
        assert_eq!(cells(Mode::DontAsk), [Deny, Deny, Deny]);
        assert_eq!(cells(Mode::BypassPermissions), [Allow, Allow, Allow]);
    }

    #[test]
    fn modes_have_names() {
        for name in Mode::names() {
            assert_eq!(name.parse::<Mode>().unwrap().as_str(), name);
        }
        let error = "accept-edits".parse::<Mode>().unwrap_err().to_string();
        assert!(error.contains("acceptEdits"), "{error}");
    }
}
