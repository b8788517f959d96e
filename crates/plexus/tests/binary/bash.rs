//! Shell commands through a running gateway.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::home::Home;
use crate::process::{Plexus, TEST_TIMEOUT, message, plexus};

fn call(command: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"bash_execute","arguments":{{"command":{command}}},"_meta":{{"progressToken":"t"}}}}}}"#
    )
}

/// S003-44, S003-46, C19: the client that starts the program may run commands, and their output is
/// streamed.
#[test]
fn commands_are_run_and_streamed_over_stdio() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    let streamed = plexus.ask(&call("echo hello; exit 2"));
    assert_eq!(streamed["method"], "notifications/progress");
    assert_eq!(streamed["params"]["message"], "hello\n");
    let result = &plexus.receive()["result"];
    assert_eq!(result["content"][0]["text"], "hello\n");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], 2);
}

/// S003-27: a command ends when the client cancels it.
#[test]
fn cancelling_ends_a_command() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    let streamed = plexus.ask(&call("echo $$; exec sleep 1000"));
    let id = streamed["params"]["message"]
        .as_str()
        .unwrap()
        .trim()
        .to_owned();
    let process = std::path::Path::new("/proc").join(id);
    plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    while process.exists() {
        // Each request takes a moment, and the program answers other requests in between.
        plexus.ask(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    }
}

/// The listed tools over HTTP, when the program is started with these arguments.
fn listed_over_http(arguments: &[&str]) -> String {
    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let arguments = [&["serve", "--http", "127.0.0.1:0"], arguments].concat();
    let plexus = Plexus::start(&arguments);
    let url = plexus.wait_for_stderr("listening on http://");
    let (address, _) = url.split_once('/').unwrap();
    let mut listed = String::new();
    let mut params = format!("{{{META}}}");
    loop {
        let page = page_over_http(address, &params);
        listed.push_str(&page["result"]["tools"].to_string());
        let Some(cursor) = page["result"].get("nextCursor") else {
            break;
        };
        params = format!(r#"{{"cursor":{cursor},{META}}}"#);
    }
    assert!(listed.contains("echo_once"), "{listed}");
    listed
}

fn page_over_http(address: &str, params: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    message(body)
}

/// Clients over HTTP cannot run commands unless an option allows it.
#[test]
fn commands_are_not_run_over_http_unless_allowed() {
    let by_default = listed_over_http(&[]);
    for tool in ["bash_execute", "claudecode_chat", "loopback_respond"] {
        assert!(!by_default.contains(tool), "{tool}");
    }
    assert!(!listed_over_http(&["--stdio"]).contains("bash_execute"));
    assert!(listed_over_http(&["--allow-bash"]).contains("bash_execute"));
    assert!(listed_over_http(&["--allow-claudecode"]).contains("claudecode_chat"));
}

/// The policy rules in plexus.toml apply to the built-in tools, too.
#[test]
fn rules_apply_to_commands() {
    let rules = r#"
        [[policy.rules]]
        tool = "bash_execute"
        pattern = "rm *"
        action = "deny"
    "#;
    let home = Home::with(&[
        ("project/plexus.toml", rules),
        ("servers.json", r#"{"mcpServers":{}}"#),
    ]);
    let servers = home.path("servers.json");
    let mut command = plexus(&[
        "serve",
        "--stdio",
        "--mcp-config",
        servers.to_str().unwrap(),
    ]);
    command
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env_remove("XDG_CONFIG_HOME");
    let mut plexus = Plexus::spawn(&mut command);
    plexus.initialize("2025-11-25");
    assert!(plexus.tools().contains(&"bash_execute".to_owned()));
    let refused = plexus.ask(&call("rm -r .")).to_string();
    assert!(
        refused.contains("bash_execute was not called: denied by"),
        "{refused}"
    );
    let streamed = plexus.ask(&call("echo hello"));
    assert_eq!(streamed["params"]["message"], "hello\n");
}
