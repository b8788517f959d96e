//! `[limits]` in `plexus.toml` takes effect in the running program.

use std::io::{Read, Write};
use std::net::TcpStream;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, tool};
use serde_json::{Value, json};

use crate::gateway::{answer, call, definition, file, until_tools};
use crate::home::Home;
use crate::http::post;
use crate::process::{Plexus, TEST_TIMEOUT};

const SETTINGS: &str = ".config/plexus/plexus.toml";

fn home(limits: &str) -> Home {
    Home::with(&[(SETTINGS, &format!("[limits]\n{limits}\n"))])
}

/// The address that the program listens on.
fn address(plexus: &Plexus) -> String {
    let url = plexus.wait_for_stderr(concat!(
        "plexus ",
        env!("CARGO_PKG_VERSION"),
        " listening on http://"
    ));
    url.split('/').next().unwrap().to_owned()
}

/// Calls `echo_echo` with a message of this many characters, and returns the response.
fn echo(plexus: &mut Plexus, id: usize, length: usize) -> Value {
    let params = json!({"name": "echo_echo", "arguments": {"message": "x".repeat(length)}});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    plexus.send(&request.to_string());
    answer(plexus, &json!(id))
}

#[test]
fn the_size_of_messages_is_limited() {
    let home = home("max_message_bytes = 2048\nmax_answer_bytes = 1024");
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    let short = echo(&mut plexus, 1, 100);
    assert!(short["result"]["content"].is_array(), "{short}");
    // The request is below its limit, the result is above.
    let result = echo(&mut plexus, 2, 1500);
    assert!(result.to_string().contains("1024"), "{result}");
    assert!(
        result["result"]["content"][0]["text"] != "x".repeat(1500),
        "{result}"
    );
    let request = echo(&mut plexus, 3, 3000);
    let message = request["error"]["message"].as_str().unwrap();
    assert!(message.contains("2048"), "{request}");
    assert_eq!(plexus.end().code, Some(0));
}

/// A call of `echo_echo` of exactly this many bytes.
fn request_of(bytes: usize) -> String {
    let request = |length: usize| {
        let params = json!({"name": "echo_echo", "arguments": {"message": "x".repeat(length)}});
        json!({"jsonrpc": "2.0", "id": bytes, "method": "tools/call", "params": params}).to_string()
    };
    let request = request(bytes - request(0).len());
    assert_eq!(request.len(), bytes);
    request
}

/// A message of exactly the limit is accepted, and one byte more is refused. The ending of a line
/// and the head of an HTTP request do not count.
#[test]
fn the_limit_counts_the_message_and_nothing_else() {
    let home = home("max_message_bytes = 2048");
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    for (bytes, is_accepted) in [(2048, true), (2049, false)] {
        plexus.send(&request_of(bytes));
        let answer = answer(&plexus, &json!(bytes));
        assert_eq!(answer["result"].is_object(), is_accepted, "{answer}");
    }
    assert_eq!(plexus.end().code, Some(0));

    let mut plexus = home.start(&["serve", "--http", "127.0.0.1:0"]);
    let address = address(&plexus);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}
    }});
    let begun = post(&address, "/mcp", &address, "", &initialize.to_string());
    let session = begun
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{begun}"));
    let headers = format!("Mcp-Session-Id: {session}\r\n");
    for (bytes, status) in [(2048, "HTTP/1.1 200 "), (2049, "HTTP/1.1 413 ")] {
        let answer = post(&address, "/mcp", &address, &headers, &request_of(bytes));
        assert!(answer.starts_with(status), "{bytes}: {answer}");
    }
    plexus.terminate();
    assert_eq!(plexus.wait().code, Some(0));
}

/// The answers of a batch are limited together. One that exceeds the limit becomes an error, and the
/// others stay.
#[test]
fn the_answers_of_a_batch_are_limited_together() {
    let home = home("max_answer_bytes = 6000");
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-03-26");
    let echo = |id: usize| {
        let params = json!({"name": "echo_echo", "arguments": {"message": "x".repeat(1000)}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    plexus.send(&json!((1..=8).map(echo).collect::<Vec<_>>()).to_string());
    let answers = loop {
        let line = plexus.line();
        if line.starts_with('[') {
            break serde_json::from_str::<Value>(&line).unwrap();
        }
    };
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 8, "{answers:?}");
    let (results, errors): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|answer| answer.get("result").is_some());
    assert!(!results.is_empty() && !errors.is_empty(), "{answers:?}");
    for error in errors {
        let text = error["error"]["message"].as_str().unwrap();
        assert!(text.contains("batch are larger than 6000 bytes"), "{error}");
    }
    assert_eq!(plexus.end().code, Some(0));
}

/// The server never answers the call.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_call_is_limited() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let server = StdioServer::new(Script::from(&offer)).await;
    let home = home("call_timeout_seconds = 0.5");
    home.write("servers.json", &file(&[("slow", definition(&server))]));
    let servers = home.path("servers.json");
    let mut plexus = home.start(&[
        "serve",
        "--stdio",
        "--mcp-config",
        servers.to_str().unwrap(),
    ]);
    plexus.initialize("2025-11-25");
    until_tools(&mut plexus, "slow__", &["slow__work"]);
    plexus.send(&call("slow__work", 1));
    let answer = answer(&plexus, &json!(1));
    assert!(
        answer.to_string().contains("not answered in time"),
        "{answer}"
    );
    assert_eq!(plexus.end().code, Some(0));
}

#[test]
fn the_head_of_an_http_request_is_limited() {
    let home = home("max_request_head_bytes = 8192");
    let mut plexus = home.start(&["serve", "--http", "127.0.0.1:0"]);
    let address = &address(&plexus);
    let status = |padding: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let padding = "x".repeat(padding);
        let head = format!(
            "GET /nothing HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nX-Padding: {padding}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(4 * 1024), "404");
    assert_eq!(status(16 * 1024), "431");
    plexus.terminate();
    assert_eq!(plexus.wait().code, Some(0));
}

/// With an invalid value or an unknown key, which are reported with their position, nothing is
/// served.
#[test]
fn wrong_limits_are_reported() {
    for (limits, said) in [
        (
            "max_sessions = 0",
            "limits.max_sessions: it is 0; use a whole number from 1 to",
        ),
        (
            "max_sesions = 5",
            "plexus.toml:2:1: unknown field `max_sesions`",
        ),
    ] {
        let home = home(limits);
        let ended = home.start(&["serve", "--stdio"]).end();
        assert_eq!(ended.code, Some(1));
        let said_at_all = ended.stderr.iter().any(|line| line.contains(said));
        assert!(said_at_all, "{:?}", ended.stderr);
    }
}
