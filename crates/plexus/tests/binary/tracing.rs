//! Log records of calls and of messages on the wire.

use serde_json::{Value, json};

use crate::http::{STATELESS_PING, post, serve};
use crate::process::Plexus;
use crate::servers::{fixture, home};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// The JSON records on standard error. The first lines are text for users.
fn records(stderr: &[String]) -> Vec<Value> {
    let lines = stderr.iter().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// A client of the older era calls a server of the newer era, which asks a question. All records of
/// the call are in one tree of spans, with both eras, the principal, the tool, the server and the
/// outcome.
#[test]
fn a_call_between_eras_is_one_tree_of_spans() {
    let home = home(&json!({"s": fixture("modern")}));
    let mut command = crate::process::plexus(&[
        "serve",
        "--stdio",
        "--log-format",
        "json",
        "--log-level",
        "debug",
    ]);
    command
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env_remove("XDG_CONFIG_HOME");
    let mut plexus = Plexus::spawn(&mut command);
    let greeting = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "tester", "version": "1"}}});
    plexus.ask(&greeting.to_string());
    plexus.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "s__test_elicitation", "arguments": {"message": "Who?"},
        "_meta": {"traceparent": format!("00-{TRACE_ID}-b7ad6b7169203331-01")}}});
    let question = plexus.ask(&call.to_string());
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    let result = plexus.ask(&answer.to_string());
    assert_eq!(result["id"], 1, "{result}");
    let records = records(&plexus.end().stderr);

    let find = |text: &str, innermost: &str| {
        let found = records
            .iter()
            .find(|record| record["message"] == text && record["span"]["name"] == innermost);
        found.unwrap_or_else(|| panic!("{text} in {innermost}: {records:#?}"))
    };
    let ended = find("call ended", "call");
    let outer = &ended["span"];
    for (field, value) in [
        ("method", "tools/call"),
        ("tool", "s__test_elicitation"),
        ("principal", "anonymous"),
        ("client", "tester"),
        ("client_era", "legacy"),
        ("client_revision", "2025-11-25"),
        ("trace_id", TRACE_ID),
    ] {
        assert_eq!(outer[field], value, "{field} of {outer}");
    }
    assert_eq!(ended["outcome"], "ok");

    let upstream = find("call ended", "upstream");
    let inner = &upstream["span"];
    for (field, value) in [
        ("server", "s"),
        ("tool", "test_elicitation"),
        ("server_era", "modern"),
        ("server_revision", "2026-07-28"),
    ] {
        assert_eq!(inner[field], value, "{field} of {inner}");
    }
    for asked in ["asks the caller", "the caller answered"] {
        let asked = find(asked, "upstream");
        assert_eq!(asked["method"], "elicitation/create");
        let names = asked["spans"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|span| span["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["call", "upstream"], "the one is inside the other");
    }
}

/// Every message is logged at `trace`, with its direction; bearer tokens and secret arguments are
/// redacted.
#[cfg(unix)]
#[test]
fn the_wire_is_logged_without_secrets() {
    let (mut plexus, address, path) = serve(&["--log-format", "json", "--log-level", "trace"]);
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                   Mcp-Name: echo_ping\r\nAuthorization: Bearer very-secret\r\n";
    let body = STATELESS_PING.replace("\"_meta\":{", r#""_meta":{"vendor/api_key":"also-secret","#);
    let answer = post(&address, &path, &address, headers, &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    plexus.terminate();
    let stderr = plexus.wait().stderr;
    let said = stderr.join("\n");
    assert!(
        !said.contains("very-secret") && !said.contains("also-secret"),
        "{said}"
    );

    let records = records(&stderr);
    let of = |direction: &str, text: &str| {
        let mut found = records
            .iter()
            .filter(|record| record["direction"] == direction && record.to_string().contains(text));
        found
            .next()
            .unwrap_or_else(|| panic!("{text} {direction}: {said}"))
    };
    let head = of("from client", "POST /mcp");
    assert!(
        head["headers"]
            .as_str()
            .unwrap()
            .contains("authorization: ***"),
        "{head}"
    );
    let text = of("from client", "api_key")["text"].as_str().unwrap();
    assert!(text.contains(r#"api_key":"***""#), "{text}");
    of("to client", "200 OK");
    of("to client", "pong");
}

/// Lines that are not JSON-RPC are logged as well; the default format is text.
#[test]
fn the_wire_is_logged_as_text_by_default() {
    let mut plexus = Plexus::start(&["serve", "--stdio", "--log-level", "trace"]);
    let refused = plexus.ask("no json");
    assert_eq!(refused["error"]["code"], -32700);
    let stderr = plexus.end().stderr;
    let logged = |text: &str| stderr.iter().any(|line| line.contains(text));
    assert!(logged("from client") && logged("no json"), "{stderr:#?}");
    assert!(logged("to client") && logged("-32700"), "{stderr:#?}");
}
