//! Servers for tests of commands that use the configured servers.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::Home;

/// The file with the configured servers, in a home directory.
pub(crate) const USER: &str = ".mcp.json";

/// The path of a binary of this workspace, in the directory of the tested one.
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

/// A home directory with these servers in the user scope.
pub(crate) fn home(servers: &Value) -> Home {
    Home::with(&[(USER, &json!({"mcpServers": servers}).to_string())])
}

/// The same server over HTTP, on its own port, for several concurrent clients.
#[expect(
    clippy::disallowed_methods,
    reason = "only the test waits for this server"
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
