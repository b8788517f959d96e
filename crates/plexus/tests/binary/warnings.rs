//! Problems in a configuration are reported, and do not break the rest.

use serde_json::Value;

use crate::process::{Plexus, message, plexus};

const LIST: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;

/// Serves the servers of a file over stdio until the client has a list of tools.
fn serve(configuration: &str) -> (Value, Vec<String>) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("servers.json");
    std::fs::write(&file, configuration).unwrap();
    let arguments = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut command = plexus(&arguments);
    command
        .current_dir(home.path())
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    let mut plexus = Plexus::spawn(&mut command);
    plexus.initialize("2025-11-25");
    let list = plexus.ask(LIST);
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in &ended.stdout {
        message(line);
    }
    (list, ended.stderr)
}

/// S001-D05, S001-D06, C54: a file that cannot be read is reported on standard error, and the other
/// servers are served; standard output has only messages.
#[test]
fn a_broken_file_is_told_on_standard_error() {
    for (broken, told) in [
        ("{oops", "not JSON"),
        ("", "the file is empty"),
        (r#"{"servers": {}}"#, "mcpServers"),
        (
            r#"{"mcpServers": {"a": {"comand": "x"}}}"#,
            "\"a\": command",
        ),
    ] {
        let (list, warnings) = serve(broken);
        let tools = list["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "echo_echo"));
        let warnings = warnings.join("\n");
        assert!(warnings.contains("servers.json"), "{warnings}");
        assert!(warnings.contains(told), "{warnings}");
    }
}

/// S001-D06, C54: the same for a server that cannot be started, and for one that writes lines that
/// are not messages.
#[test]
fn a_failing_server_writes_nothing_to_standard_output() {
    let (list, _) = serve(
        r#"{"mcpServers": {
            "missing": {"command": "no-such-mcp-server"},
            "noisy": {"command": "sh", "args": ["-c", "echo hello; echo oh >&2; exit 1"]}
        }}"#,
    );
    assert!(list["result"]["tools"].is_array());
}
