//! Tests `plexus bridge` between clients and servers of every revision, over every transport on
//! both sides. No feature may be worse than `docs/protocol.md` says.
//!
//! `cargo test -p plexus-conformance --test matrix -- --nocapture` prints the tables.

#[cfg(test)]
mod document;
#[cfg(test)]
mod features;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod verdict;
