//! What Plexus asks of the system that Rust has no safe words for.
//!
//! This is the one crate with `unsafe` code in it; every other one denies it.

pub mod memory;
pub mod text;
