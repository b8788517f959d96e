//! The six tools that manage servers, as a client uses them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

mod checklist;
mod ending;
mod looking;
mod permission;
mod polling;
mod support;
mod watching;
