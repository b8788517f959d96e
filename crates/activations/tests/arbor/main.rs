//! Trees as their clients see them: tools, results, errors, resources.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

mod life;
mod resources;
mod support;
mod tools;
mod trouble;
