//! `[limits]` in `plexus.toml` takes effect in the running program.

use std::io::{Read, Write};
use std::net::TcpStream;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, tool};
use serde_json::{Value, json};

use crate::gateway::{answer, call, definition, file, until_tools};
use crate::home::Home;
use crate::process::{Plexus, TEST_TIMEOUT};

const SETTINGS: &str = ".config/plexus/plexus.toml";

fn home(limits: &str) -> Home {
    Home::with(&[(SETTINGS, &format!("[limits]\n{limits}\n"))])
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
    let url = plexus.wait_for_stderr(concat!(
        "plexus ",
        env!("CARGO_PKG_VERSION"),
        " listening on http://"
    ));
    let address = url.split('/').next().unwrap();
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

/// An invalid value and an unknown key are reported with their position, and the defaults apply.
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
        let mut plexus = home.start(&["serve", "--stdio"]);
        plexus.initialize("2025-11-25");
        let ended = plexus.end();
        assert_eq!(ended.code, Some(0));
        let said_at_all = ended.stderr.iter().any(|line| line.contains(said));
        assert!(said_at_all, "{:?}", ended.stderr);
    }
}
