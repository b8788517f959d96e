//! Scripted MCP servers: they do exactly what a test says, correct or not.
//!
//! A [`StdioServer`] is a program with a [`Script`], which a test can also control while it runs.
//! An [`HttpServer`] runs in the process of the test and answers with [`Reply`]s. Both can start
//! from an [`Offer`], the responses of a well-behaved server.

mod http;
mod offer;
mod record;
mod reply;
mod script;
mod stdio;

use std::path::PathBuf;

pub use http::{HttpServer, Received};
pub use offer::{Offer, tool};
pub use reply::{Reply, Stream};
pub use script::{MARK, Script, Step};
pub use stdio::{Process, StdioServer};

/// The path of a program of this workspace, which is built with the tests.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    // The test binary is in target/<profile>/deps.
    let folder = test.parent().and_then(std::path::Path::parent);
    let program = folder.unwrap_or(&test).join(name);
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo build --workspace --bins`",
        program.display()
    );
    program
}
