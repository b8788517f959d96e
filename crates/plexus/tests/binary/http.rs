//! MCP over HTTP, with hand-written requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::home::Home;
use crate::process::{Plexus, TEST_TIMEOUT};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
pub(crate) const STATELESS_PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo_ping","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Starts the program on a free port, and returns its address and path as it prints them.
pub(crate) fn serve(arguments: &[&str]) -> (Plexus, String, String) {
    let arguments = [&["serve", "--http", "127.0.0.1:0"], arguments].concat();
    let plexus = Plexus::start(&arguments);
    let start = concat!(
        "plexus ",
        env!("CARGO_PKG_VERSION"),
        " listening on http://"
    );
    let url = plexus.wait_for_stderr(start);
    let (address, path) = url.split_once('/').unwrap();
    (plexus, address.to_owned(), format!("/{path}"))
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Posts `body` with further headers, each ended by a line break, and returns the whole response.
pub(crate) fn post(address: &str, path: &str, host: &str, headers: &str, body: &str) -> String {
    let mut stream = connect(address);
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn json_body(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    serde_json::from_str(body).expect(answer)
}

/// S000-08, S003-32.
#[cfg(unix)]
#[test]
fn both_eras_are_served_until_a_signal() {
    let (mut plexus, address, path) = serve(&[]);
    assert_eq!(path, "/mcp");
    let answer = json_body(&post(&address, &path, &address, "", INITIALIZE));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                   Mcp-Name: echo_ping\r\n";
    let answer = json_body(&post(&address, &path, &address, headers, STATELESS_PING));
    assert_eq!(answer["result"]["content"][0]["text"], "pong");

    plexus.terminate();
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.is_empty());
}

/// `localhost` is an address, on the command line and in the settings.
#[test]
fn localhost_is_an_address() {
    let plexus = Plexus::start(&["serve", "--http", "localhost:0"]);
    let url = plexus.wait_for_stderr("listening on ");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");

    let settings = (
        ".config/plexus/plexus.toml",
        "[serve]\nhttp = \"localhost:0\"\n",
    );
    let home = Home::with(&[settings]);
    let plexus = home.start(&["serve"]);
    let url = plexus.wait_for_stderr("listening on ");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(!url.contains(":4445/"), "the default address: {url}");
}

/// SEC-01: other hosts than this machine must be allowed explicitly.
#[test]
fn hosts_can_be_allowed() {
    let (_plexus, address, path) = serve(&["--allow-host", "plexus.example"]);
    let allowed = post(&address, &path, "plexus.example", "", INITIALIZE);
    assert!(allowed.starts_with("HTTP/1.1 200 "), "{allowed}");
    let refused = post(&address, &path, "evil.example", "", INITIALIZE);
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let headers = "Origin: https://evil.example\r\n";
    let refused = post(&address, &path, "plexus.example", headers, INITIALIZE);
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
}

/// Without tokens, pages that other programs of this machine serve must be allowed explicitly.
#[test]
fn on_loopback_only_pages_of_this_server_are_allowed() {
    let (_plexus, address, path) = serve(&["--allow-origin", "http://localhost:2"]);
    let port = address.split(':').next_back().unwrap();
    let localhost = format!("localhost:{port}");
    let status = |host: &str, origin: &str| {
        let headers = format!("Origin: {origin}\r\n");
        let answer = post(&address, &path, host, &headers, INITIALIZE);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&address, "http://localhost:1"), "403");
    assert_eq!(status(&address, "http://127.0.0.1:1"), "403");
    assert_eq!(status(&localhost, "http://localhost"), "403");
    assert_eq!(status(&address, "http://localhost:2"), "200");
    assert_eq!(status(&address, &format!("http://{address}")), "200");
    assert_eq!(status(&localhost, &format!("http://{localhost}")), "200");
    assert_eq!(status(&address, &format!("http://{localhost}")), "200");
}

#[test]
fn the_older_transport_is_beside_the_endpoint() {
    let (_plexus, address, path) = serve(&["--sse", "--path", "/here"]);
    assert_eq!(path, "/here");
    let answer = json_body(&post(&address, &path, &address, "", INITIALIZE));
    assert_eq!(answer["id"], 1);

    let mut stream = connect(&address);
    write!(
        stream,
        "GET /sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    while !answer
        .windows(15)
        .any(|window| window == b"event: endpoint")
    {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..count]);
    }
}

/// The end of standard input ends all transports.
#[test]
fn stdio_and_http_are_served_together() {
    let (mut plexus, address, path) = serve(&["--stdio"]);
    let by_pipe = plexus.initialize("2025-11-25");
    let by_http = json_body(&post(&address, &path, &address, "", INITIALIZE));
    assert_eq!(by_pipe["result"], by_http["result"]);
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// S000-50.
#[test]
fn a_port_in_use_is_explained() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut plexus = Plexus::start(&["serve", "--http", &address]);
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = ended.stderr.join("\n");
    assert!(
        said.contains(&format!("cannot listen on {address}")),
        "{said}"
    );
    assert!(said.contains("--http 127.0.0.1:0"), "{said}");
}

/// The first signal waits for requests in flight, the second does not.
#[cfg(unix)]
#[test]
fn a_second_signal_does_not_wait() {
    let (mut plexus, address, path) = serve(&[]);
    let mut stream = connect(&address);
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\
         Expect: 100-continue\r\n\r\n"
    )
    .unwrap();
    // This response shows that the server waits for the body, which never comes.
    let mut goes_on = [0; 12];
    stream.read_exact(&mut goes_on).unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100");

    plexus.terminate();
    plexus.wait_for_stderr("shutting down");
    plexus.terminate();
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
}
