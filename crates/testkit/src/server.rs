//! Scripted MCP servers: they do exactly what a test tells them to, right or wrong.
//!
//! A [`StdioServer`] is a program whose reactions are a [`Script`], and which a test can also direct
//! as it runs. A [`HttpServer`] runs in the test's own process and answers with [`Reply`]s. What a
//! well-behaved server would say is an [`Offer`], from which both can start.

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

/// A program of this workspace, which is built along with the tests of all its packages.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    // The test is in target/<profile>/deps.
    let folder = test.parent().and_then(std::path::Path::parent);
    let program = folder.unwrap_or(&test).join(name);
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo build --workspace --bins`",
        program.display()
    );
    program
}
