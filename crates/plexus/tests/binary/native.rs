//! The native protocol: `plexus --stdio`.

use serde_json::{Value, json};

use crate::process::Plexus;

fn event(subscription: &Value, method: &str, event: &Value) -> Value {
    let params = json!({ "subscription": subscription, "result": event });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// S003-58, S003-43, S003-41: no handshake, positional parameters, and events while the call runs,
/// in both spellings.
#[test]
fn tools_are_methods_and_results_are_streams() {
    let mut plexus = Plexus::start(&["--stdio"]);
    for (method, id) in [("echo.echo", json!(7)), ("echo_echo", json!("b"))] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": ["hi", 2] });
        let answer = plexus.ask(&request.to_string());
        assert_eq!(answer["id"], id);
        let subscription = &answer["result"];
        let start = event(subscription, method, &json!({ "type": "start" }));
        assert_eq!(plexus.receive(), start);
        let mut text = String::new();
        let last = loop {
            let event = plexus.receive();
            assert_eq!(&event["params"]["subscription"], subscription);
            let result = &event["params"]["result"];
            match result["type"].as_str() {
                Some("stdout") => text.push_str(result["data"].as_str().unwrap()),
                _ => break event,
            }
        };
        assert_eq!(text, "hi\nhi");
        let complete = event(subscription, method, &json!({ "type": "complete" }));
        assert_eq!(last, complete);
    }
    let ended = plexus.end();
    assert_eq!((ended.code, ended.stdout.len()), (Some(0), 0), "{ended:?}");
}

/// S003-05, S003-58, S003-59, C49: MCP is served beside the native protocol, and alone if
/// requested.
#[test]
fn with_mcp_there_are_no_native_methods() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"echo.ping"}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let mut native = Plexus::start(&["--stdio"]);
    assert!(native.ask(list)["result"]["tools"].is_array());
    assert_eq!(native.ask(ping)["result"], 1);

    let mut mcp = Plexus::start(&["--stdio", "--mcp"]);
    assert_eq!(mcp.ask(ping)["error"]["code"], -32600);
    mcp.initialize("2025-03-26");
    assert_eq!(mcp.ask(ping)["error"]["code"], -32601);
    assert!(mcp.ask(list)["result"]["tools"].is_array());
}

/// C14: output events have the stream of each chunk, and the last event has the exit status.
#[test]
fn a_command_is_streamed_by_its_outputs() {
    let mut plexus = Plexus::start(&["--stdio"]);
    for (command, said, exit_code) in [
        ("echo out; echo err >&2", "out\n", 0),
        ("echo err >&2; exit 3", "", 3),
    ] {
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "bash.execute", "params": { "command": command },
        });
        let answer = plexus.ask(&request.to_string());
        assert!(answer["result"].is_u64(), "{answer}");
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let last = loop {
            let event = plexus.receive()["params"]["result"].clone();
            let text = event["data"].as_str().unwrap_or_default();
            match event["type"].as_str() {
                Some("start") => {}
                Some("stdout") => stdout.push_str(text),
                Some("stderr") => stderr.push_str(text),
                _ => break event,
            }
        };
        assert_eq!((&*stdout, &*stderr), (said, "err\n"));
        assert_eq!(last, json!({ "type": "complete", "exit_code": exit_code }));
    }
}
