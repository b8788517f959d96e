//! Permissions: which calls are made, which the user is asked about, and which are refused.
//!
//! A rule that denies a call comes first. Then the first rule that matches decides (C29), and if
//! there is none, the mode does, by the risk of the call: see [`Mode::verdict`].

mod agent_rules;
mod answer;
mod gate;
mod mode;
mod subject;

pub(crate) use agent_rules::lexical;
pub use answer::{PermissionAnswer, PermissionQuestion, Prompter};
pub use gate::{PermissionRequest, Permissions};
pub use mode::{Mode, Risk, UnknownMode, Verdict};
pub use subject::{Owner, Subject};
