//! MCP over standard input and output.

use crate::process::{Plexus, message, plexus, unread_pipe};

const LIST: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const STATELESS_PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"echo_ping","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn tool_names(list: &serde_json::Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// S000-51, S002-37, S002-43, S002-05, S000-10, S000-11: a whole session, which ends when the input
/// is closed.
#[test]
fn a_session_from_the_handshake_to_the_end_of_input() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    let answer = plexus.initialize("2025-03-26");
    assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(answer["result"]["serverInfo"]["name"], "plexus");
    assert_eq!(
        answer["result"]["serverInfo"]["version"],
        env!("CARGO_PKG_VERSION")
    );

    let list = plexus.ask(LIST);
    let expected = ["health_check", "echo_echo", "echo_once", "echo_ping"];
    assert_eq!(tool_names(&list)[..4], expected);
    let result = plexus.ask(&call("echo_echo", r#"{"message":"hi","count":2}"#));
    assert_eq!(result["result"]["content"][0]["text"], "hi\nhi");
    assert_eq!(result["result"]["isError"], false);

    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
}

/// STDIO-02, S000-06, S000-33, S000-34: logs go to standard error, whatever their level.
#[test]
fn nothing_but_messages_is_on_standard_output() {
    let mut plexus = Plexus::start(&["serve", "--stdio", "--log-level", "trace"]);
    plexus.initialize("2025-11-25");
    plexus.send("no message");
    plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#);
    plexus.send(LIST);
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0));
    let answers: Vec<_> = ended.stdout.iter().map(|line| message(line)).collect();
    assert_eq!(answers.len(), 2, "{ended:?}");
    let logs = ended.stderr.join("\n");
    assert!(logs.contains("unheard-of"), "{logs}");
    assert!(
        !logs.contains('\u{1b}'),
        "colours are for terminals: {logs}"
    );
}

/// C02: messages of both eras are served on one connection.
#[test]
fn both_eras_on_one_pipe() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    let discovered = plexus.ask(DISCOVER);
    let versions = discovered["result"]["supportedVersions"]
        .as_array()
        .unwrap();
    assert_eq!(versions.len(), 5, "{discovered}");
    let result = plexus.ask(STATELESS_PING);
    assert_eq!(result["result"]["resultType"], "complete");
    assert_eq!(result["result"]["content"][0]["text"], "pong");

    plexus.initialize("2024-11-05");
    let result = plexus.ask(&call("echo_ping", "{}"));
    assert_eq!(result["result"]["content"][0]["text"], "pong");
    assert_eq!(plexus.ask(STATELESS_PING)["id"], "p");
    assert_eq!(plexus.end().code, Some(0));
}

/// S000-52, S000-40: invalid JSON is answered with an error, and the session continues.
#[test]
fn garbage_is_answered_and_survived() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    for garbage in ["no message", "{", r#"{"jsonrpc":"2.0","id":1,"#] {
        let answer = plexus.ask(garbage);
        assert_eq!(answer["error"]["code"], -32700, "{garbage}");
        assert_eq!(
            answer.get("id"),
            Some(&serde_json::Value::Null),
            "{garbage}"
        );
    }
    plexus.initialize("2025-06-18");
    assert_eq!(plexus.ask(LIST)["id"], "list");
    assert_eq!(plexus.end().code, Some(0));
}

/// S003-59, S003-57: the behaviour that the Substrate document specifies.
#[test]
fn stdio_mcp_speaks_mcp() {
    let mut plexus = Plexus::start(&["--stdio", "--mcp"]);
    let answer = plexus.initialize("2024-11-05");
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(plexus.end().code, Some(0));
}

/// C11, C12, S003-16, S003-21: tools are listed with dotted names, and every spelling is accepted.
#[test]
fn the_substrate_profile_has_dotted_names() {
    let mut plexus = Plexus::start(&["serve", "--stdio", "--profile", "substrate"]);
    plexus.initialize("2025-03-26");
    let list = plexus.ask(LIST);
    let expected = ["health.check", "echo.echo", "echo.once", "echo.ping"];
    assert_eq!(tool_names(&list)[..4], expected);
    for name in ["echo.ping", "echo_ping"] {
        let result = plexus.ask(&call(name, "{}"));
        assert_eq!(result["result"]["content"][0]["text"], "pong", "{name}");
    }
    let answer = plexus.ask(&call("ping", "{}"));
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["message"], "Invalid tool name format: ping");
}

#[test]
fn one_era_can_be_served_alone() {
    let mut modern = Plexus::start(&["serve", "--stdio", "--era", "modern"]);
    assert!(modern.initialize("2025-11-25")["error"].is_object());
    assert!(modern.ask(STATELESS_PING)["result"].is_object());
    let mut legacy = Plexus::start(&["serve", "--stdio", "--era", "legacy"]);
    assert!(legacy.ask(DISCOVER)["error"].is_object());
    assert!(legacy.initialize("2025-11-25")["result"].is_object());
}

/// S000-50: a client that disconnects without reading is not an error.
#[test]
fn a_closed_output_is_a_clean_end() {
    let mut plexus = Plexus::spawn(plexus(&["serve", "--stdio"]).stdout(unread_pipe()));
    plexus.send(DISCOVER);
    // The input stays open: closing the output ends the process.
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_closed_standard_error_does_no_harm() {
    let mut command = plexus(&["serve", "--stdio", "--log-level", "trace"]);
    let mut plexus = Plexus::spawn(command.stderr(unread_pipe()));
    plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#);
    assert_eq!(plexus.ask(DISCOVER)["id"], "d");
    assert_eq!(plexus.end().code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_signal_is_a_clean_end() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    plexus.ask(LIST);
    plexus.terminate();
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Requests that come while requests in flight are finished are answered with an error.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn requests_during_the_shutdown_are_refused() {
    use plexus_mcp_protocol::Revision;
    use plexus_testkit::server::{Offer, Script, StdioServer, tool};

    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let server = StdioServer::new(Script::from(&offer).ignoring("tools/call")).await;
    let servers = crate::gateway::file(&[("s", crate::gateway::definition(&server))]);
    let home = crate::home::Home::with(&[(".mcp.json", &servers)]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    crate::gateway::until_tools(&mut plexus, "s__", &["s__work"]);
    plexus.send(&call("s__work", "{}"));
    plexus.terminate();
    let refused = loop {
        let answer = plexus.ask(LIST);
        if answer["id"] == "list" && answer["error"].is_object() {
            break answer;
        }
    };
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("the server is shutting down"), "{refused}");
    plexus.wait();
}

/// The built-in services declare logging, and log their calls to a client that asks for `debug`.
#[test]
fn built_in_services_log_what_they_do() {
    let mut plexus = Plexus::start(&["serve", "--stdio"]);
    let answer = plexus.initialize("2025-06-18");
    assert!(answer["result"]["capabilities"]["logging"].is_object());
    let level =
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#;
    assert!(plexus.ask(level)["result"].is_object());
    plexus.send(&call("echo_ping", "{}"));
    let mut states = Vec::new();
    loop {
        let message = plexus.receive_past_list_changes();
        if message["id"] == 7 {
            break;
        }
        assert_eq!(message["method"], "notifications/message", "{message}");
        assert_eq!(message["params"]["data"]["tool"], "echo_ping", "{message}");
        states.push(
            message["params"]["data"]["state"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(states, ["called", "finished"]);
    assert_eq!(plexus.end().code, Some(0));
}

/// Whether a part of the schema has `oneOf` without a type.
fn has_bare_alternatives(schema: &serde_json::Value) -> bool {
    match schema {
        serde_json::Value::Object(members) => {
            (members.contains_key("oneOf") && !members.contains_key("type"))
                || members.values().any(has_bare_alternatives)
        }
        serde_json::Value::Array(parts) => parts.iter().any(has_bare_alternatives),
        _ => false,
    }
}

/// Every tool of Plexus itself has a schema that all model APIs accept: an object with properties,
/// and no alternatives at the top.
#[test]
fn schemas_of_our_tools_are_accepted_by_every_model_api() {
    for arguments in [
        &["serve", "--stdio"][..],
        &["serve", "--stdio", "--tool-search"],
        &["serve", "--stdio", "--profile", "substrate"],
        &["serve", "--stdio", "--profile", "ghost"],
        &["serve", "--stdio", "--profile", "bossman"],
    ] {
        let servers = r#"{"mcpServers":{"absent":{"command":"no-such-program-anywhere"}}}"#;
        let home = crate::home::Home::with(&[
            ("servers.json", servers),
            (".config/plexus/plexus.toml", "[hub]\nmanagement = true\n"),
        ]);
        let file = home.path("servers.json");
        let profiles = arguments.contains(&"--profile");
        let searches = arguments.contains(&"--tool-search");
        let mut names = Vec::new();
        // With a server, the management tools are offered as well, as the settings say.
        let more = [file.to_str().unwrap()];
        let more: &[&str] = if profiles {
            &[]
        } else {
            &["--mcp-config", more[0]]
        };
        let mut plexus = home.start(&[arguments, more].concat());
        plexus.initialize("2025-06-18");
        let mut cursor = serde_json::Value::Null;
        let mut count = 0;
        loop {
            let mut list =
                serde_json::json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"});
            if !cursor.is_null() {
                list["params"] = serde_json::json!({"cursor": cursor});
            }
            let page = plexus.ask(&list.to_string());
            for tool in page["result"]["tools"].as_array().unwrap() {
                count += 1;
                names.push(tool["name"].as_str().unwrap().to_owned());
                let schema = &tool["inputSchema"];
                assert_eq!(schema["type"], "object", "{arguments:?}: {tool}");
                assert!(schema["properties"].is_object(), "{arguments:?}: {tool}");
                for alternatives in ["oneOf", "anyOf", "allOf"] {
                    assert!(schema.get(alternatives).is_none(), "{arguments:?}: {tool}");
                }
                assert!(!has_bare_alternatives(schema), "{arguments:?}: {tool}");
            }
            cursor = page["result"]["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert!(count > 0, "{arguments:?}");
        let has_management = names.iter().any(|name| name == "ListMcpResources");
        assert_eq!(has_management, !profiles && !searches, "{names:?}");
        assert_eq!(plexus.end().code, Some(0));
    }
}
