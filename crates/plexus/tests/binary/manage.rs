//! Tools that manage servers, and filters for clients, in a running gateway.

use serde_json::{Value, json};

use crate::home::Home;
use crate::process::{Plexus, plexus};

/// The settings with which the tools that manage servers are offered.
const MANAGEMENT: &str = "[hub]\nmanagement = true\n";

/// A gateway in front of another Plexus.
fn gateway(settings: &str) -> (Home, Plexus) {
    let program = env!("CARGO_BIN_EXE_plexus");
    let home = Home::with(&[(".config/plexus/plexus.toml", settings)]);
    let inner = home.path("inner");
    let servers = json!({"mcpServers": {"inner": {
        "command": program, "args": ["serve", "--stdio"], "env": {"PLEXUS_DATA_DIR": inner}
    }}});
    std::fs::write(home.path("servers.json"), servers.to_string()).unwrap();
    let file = home.path("servers.json");
    let arguments = ["serve", "--stdio", "--mcp-config", file.to_str().unwrap()];
    let mut command = plexus(&arguments);
    command
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env_remove("XDG_CONFIG_HOME");
    let plexus = Plexus::spawn(&mut command);
    (home, plexus)
}

fn call(plexus: &mut Plexus, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params});
    plexus.send(&request.to_string());
    loop {
        let message = plexus.receive();
        if message["id"] == tool {
            assert_eq!(message["result"]["isError"], false, "{message}");
            return message["result"].clone();
        }
    }
}

/// The tools, once those of the inner server are listed.
fn tools(plexus: &mut Plexus) -> Vec<String> {
    loop {
        let names = plexus.tools();
        if names.iter().any(|name| name.starts_with("inner__")) {
            return names;
        }
        while plexus.receive()["method"] != "notifications/tools/list_changed" {}
    }
}

/// S001-19, S001-21, S001-32, S001-42: with a server there are tools to manage it. Changes reach
/// the client as protocol notifications and with its next call.
#[test]
fn changes_of_a_polled_tool_reach_a_client_of_the_gateway() {
    let (_home, mut plexus) = gateway(MANAGEMENT);
    plexus.initialize("2025-06-18");
    assert!(tools(&mut plexus).contains(&"SubscribePolling".to_owned()));
    let polled = json!({
        "type": "tool", "server": "inner", "toolName": "task_list_tasks", "intervalMs": 1000
    });
    let result = call(&mut plexus, "SubscribePolling", &polled);
    assert_eq!(result["structuredContent"]["subscribed"], true, "{result}");
    let id = result["structuredContent"]["subscriptionId"]
        .as_str()
        .unwrap();

    let uri = format!("subscription://{id}");
    let params = json!({"uri": uri});
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params});
    let answer = plexus.ask(&request.to_string());
    assert_eq!(answer["result"], json!({}), "{answer}");
    call(
        &mut plexus,
        "inner__task_create_task",
        &json!({"description": "mow the lawn"}),
    );
    let told = plexus.receive_past_list_changes();
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["uri"], uri.as_str());

    let result = call(&mut plexus, "inner__echo_once", &json!({"message": "hi"}));
    let news = result["content"][1]["text"].as_str().unwrap();
    assert!(
        news.contains("\"task_list_tasks\" of the server \"inner\" changed"),
        "{news}"
    );
    let read = json!({"server": "plexus-hub", "uri": uri});
    let read = call(&mut plexus, "ReadMcpResource", &read);
    let text = read["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("mow the lawn"), "{text}");
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A filter applies to a client by the name that the client sends in its handshake.
#[test]
fn a_client_is_shown_what_its_filter_lets_through() {
    let settings = "[clients.test]\ntools = { allow = [\"inner.echo*\"] }";
    let (_home, mut plexus) = gateway(settings);
    plexus.initialize("2025-06-18");
    let shown = ["inner__echo_echo", "inner__echo_once", "inner__echo_ping"];
    assert_eq!(tools(&mut plexus), shown);
    let hidden = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"health_check","arguments":{}}}"#;
    let refused = plexus.ask(hidden);
    assert_eq!(
        refused["error"]["message"], "Unknown tool: health_check",
        "{refused}"
    );

    let meta = |client: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}
        });
        json!({"jsonrpc": "2.0", "id": client, "method": "tools/list", "params": {"_meta": meta}})
    };
    let mut count = |client: &str| {
        let answer = plexus.ask(&meta(client).to_string());
        answer["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(count("test"), 3);
    assert!(count("other") > 3);
}

/// S001-42, C58: without a server there are no management tools.
#[test]
fn without_servers_there_is_nothing_to_manage() {
    let home = Home::with(&[(".config/plexus/plexus.toml", MANAGEMENT)]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    let tools = plexus.tools();
    assert!(
        !tools
            .iter()
            .any(|tool| tool.contains("Mcp") || tool.contains("Polling")),
        "{tools:?}"
    );
}

/// A server cannot take names that Plexus itself uses.
#[test]
fn a_server_needs_a_name_of_its_own() {
    let servers = r#"{"mcpServers":{"plexus":{"command":"true"},"plexus-hub":{"command":"true"}}}"#;
    let home = Home::with(&[("servers.json", servers)]);
    let file = home.path("servers.json");
    let mut plexus = Plexus::start(&["serve", "--stdio", "--mcp-config", file.to_str().unwrap()]);
    plexus.initialize("2025-06-18");
    let called = call(&mut plexus, "echo_ping", &json!({}));
    assert_eq!(called["content"][0]["text"], "pong");
    let ended = plexus.end();
    let said = ended.stderr.join("\n");
    for name in ["plexus", "plexus-hub"] {
        assert!(
            said.contains(&format!(
                "server {name:?}: this name is taken by Plexus itself"
            )),
            "{said}"
        );
    }
}
