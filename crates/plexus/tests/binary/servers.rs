//! Servers for commands that use what is configured.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::Home;

/// Where configured servers are in a home.
pub(crate) const USER: &str = ".mcp.json";

/// A program of this workspace, built beside the one that is tested.
pub(crate) fn built(name: &str) -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_plexus")).with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing: build it with `cargo build --workspace --bins`",
        path.display()
    );
    path.display().to_string()
}

/// The definition of a server that uses every feature, in this era.
pub(crate) fn fixture(era: &str) -> Value {
    json!({"command": built("conformance-server"), "args": ["--stdio", "--era", era]})
}

/// A home whose user has these servers.
pub(crate) fn home(servers: &Value) -> Home {
    Home::with(&[(USER, &json!({"mcpServers": servers}).to_string())])
}

/// The same server, on a port of its own, for several clients at once.
#[expect(
    clippy::disallowed_methods,
    reason = "a server that is nobody's child but the test's"
)]
pub(crate) fn fixture_over_http() -> Command {
    let mut command = Command::new(built("conformance-server"));
    command
        .args(["--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}
