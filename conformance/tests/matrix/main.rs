//! Every revision of client against every revision of server, over every transport on either side,
//! through `plexus bridge`: what passes, what does not, and that nothing is worse than
//! `docs/protocol.md` says.
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
