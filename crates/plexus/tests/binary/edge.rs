//! The HTTP edge under clients that do not read, disconnect, or lose their credentials.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::home::Home;
use crate::http::{post, serve};
use crate::process::{Plexus, TEST_TIMEOUT, plexus_with_open_files};

pub(crate) const SETTINGS: &str = ".config/plexus/plexus.toml";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

/// A connection that is kept alive.
pub(crate) struct Connection {
    stream: TcpStream,
    address: String,
    pub(crate) received: String,
}

impl Connection {
    pub(crate) fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let address = address.to_owned();
        Self {
            stream,
            address,
            received: String::new(),
        }
    }

    /// Sends a request, with further headers, each ended by a line break.
    pub(crate) fn send(&mut self, method: &str, headers: &str, body: &str) {
        let request = request(&self.address, method, headers, body);
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    /// Reads until the received text contains `end`, and returns all of it.
    pub(crate) fn read_until(&mut self, end: &str) -> &str {
        let mut piece = vec![0; 64 * 1024];
        let start = Instant::now();
        while !self.received.contains(end) {
            // Comments that keep a stream alive are no progress.
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "no {end:?}: {}",
                self.received
            );
            let count = self.stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "closed before {end:?}: {}", self.received);
            self.received
                .push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        &self.received
    }

    /// Reads until the connection is closed, and returns all that was received.
    pub(crate) fn read_to_end(mut self) -> String {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        self.received + &String::from_utf8_lossy(&rest)
    }
}

fn request(address: &str, method: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
}

pub(crate) const ACCEPT_ALL: &str = "Accept: application/json, text/event-stream\r\n";
pub(crate) const ACCEPT_JSON: &str = "Accept: application/json\r\n";

/// Opens a session, and returns the headers of its requests.
pub(crate) fn session(address: &str, headers: &str) -> String {
    let begun = post(address, "/mcp", address, headers, INITIALIZE);
    let id = begun
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{begun}"));
    format!("{headers}Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
}

/// A call whose answer, of about this many bytes, is streamed.
pub(crate) fn streamed_call(id: usize, bytes: usize) -> String {
    let command = format!("printf begin; head -c {bytes} /dev/zero | tr '\\0' x; printf end");
    let params = json!({"name": "bash_execute", "arguments": {"command": command},
        "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

pub(crate) fn listening(plexus: &Plexus) -> String {
    let url = plexus.wait_for_stderr("listening on http://");
    url.split('/').next().unwrap().to_owned()
}

/// The status and the body of a request that resumes a stream.
pub(crate) fn resume(address: &str, session: &str, event: &str) -> (u16, String) {
    let mut connection = Connection::to(address);
    let headers = format!("{session}{ACCEPT_ALL}Last-Event-ID: {event}\r\nConnection: close\r\n");
    connection.send("GET", &headers, "");
    let answer = connection.read_to_end();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// Within the budget a stream can be resumed, beyond it the oldest are refused. A stream is forgotten
/// when its client uses the connection again, because it has then read the stream.
#[test]
fn messages_are_kept_for_clients_within_a_budget() {
    let home = Home::with(&[(SETTINGS, "[limits]\nmax_replay_total_bytes = 1000000\n")]);
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--allow-bash"]);
    let address = listening(&plexus);
    let session = session(&address, "");
    let mut connections = Vec::new();
    for id in 1..=6 {
        let mut connection = Connection::to(&address);
        let headers = format!("{session}{ACCEPT_ALL}");
        connection.send("POST", &headers, &streamed_call(id, 150_000));
        connection.read_until(&format!("\"id\":{id},"));
        connections.push(connection);
    }
    let (status, text) = resume(&address, &session, "1-0");
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("no longer kept"), "{text}");
    let (status, text) = resume(&address, &session, "5-0");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"id\":5,"), "{text}");

    let last = connections.last_mut().unwrap();
    last.read_until("\r\n0\r\n\r\n");
    last.received.clear();
    let ping = r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#;
    last.send("POST", &format!("{session}{ACCEPT_ALL}"), ping);
    last.read_until("\"ping\"");
    assert_eq!(resume(&address, &session, "6-0").0, 400);
}

/// PROG-05: a client without event streams gets no progress of a finished call on a later stream.
#[test]
fn progress_of_a_finished_call_is_not_delivered_later() {
    let (_plexus, address, _path) = serve(&["--allow-bash"]);
    let session = session(&address, "");
    let mut connection = Connection::to(&address);
    let headers = format!("{session}{ACCEPT_JSON}");
    connection.send("POST", &headers, &streamed_call(1, 10));
    connection.read_until("beginxxxxxxxxxxend");
    let mut stream = Connection::to(&address);
    stream.send("GET", &format!("{session}{ACCEPT_ALL}"), "");
    stream.read_until("\r\n\r\n");
    connection.send("DELETE", &session, "");
    let received = stream.read_to_end();
    assert!(!received.contains("notifications/progress"), "{received}");
}

/// A removed token ends the streams that were opened with it, and no others.
#[test]
fn a_removed_token_ends_its_streams() {
    let home = Home::with(&[]);
    let token = |name: &str| {
        let made = home.start(&["token", "add", name]).end();
        let token = made.stdout.join("");
        format!("Authorization: Bearer {token}\r\n")
    };
    let (laptop, ci) = (token("laptop"), token("ci"));
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--require-token"]);
    let address = listening(&plexus);
    let mut streams = [&laptop, &ci].map(|token| {
        let session = session(&address, token);
        let mut stream = Connection::to(&address);
        stream.send("GET", &format!("{session}{ACCEPT_ALL}"), "");
        stream.read_until("text/event-stream");
        stream
    });
    let removed = home.start(&["token", "remove", "laptop"]).end();
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let start = Instant::now();
    streams[0].read_until("\r\n0\r\n\r\n");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    let other = &mut streams[1].stream;
    other.set_nonblocking(true).unwrap();
    let nothing = other.read(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

/// Clients that never read take all connections that the limit on open files allows.
#[test]
fn clients_that_never_read_do_not_block_others() {
    let arguments = ["serve", "--http", "127.0.0.1:0"];
    let plexus = Plexus::spawn(&mut plexus_with_open_files(256, &arguments));
    let address = listening(&plexus);
    let session = session(&address, "");
    let headers = format!("{session}{ACCEPT_JSON}");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let pipelined = request(&address, "POST", &headers, list).repeat(200);
    let mut flood = Vec::new();
    for round in 0..8 {
        for _ in 0..50 {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_nonblocking(true).unwrap();
            // The server may read none of it.
            drop(stream.write(pipelined.as_bytes()));
            flood.push(stream);
        }
        let start = Instant::now();
        let mut health = TcpStream::connect(&address).unwrap();
        health.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(health, "GET /health HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        health.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200", "round {round}");
        // A loaded machine may need more than the second that a quiet one is allowed.
        let taken = start.elapsed();
        assert!(taken < Duration::from_secs(10), "round {round}: {taken:?}");
    }
}

/// The command that creates the data directory does not matter.
#[test]
fn the_data_directory_is_private() {
    for arguments in [
        &["token", "add", "laptop"][..],
        &["serve", "--stdio"],
        &["trust"],
    ] {
        let home = Home::with(&[(
            "project/.mcp.json",
            r#"{"mcpServers": {"x": {"command": "true"}}}"#,
        )]);
        home.start(arguments).end();
        let Ok(metadata) = fs::metadata(home.path("data")) else {
            continue;
        };
        assert_eq!(
            metadata.permissions().mode() & 0o777,
            0o700,
            "{arguments:?}"
        );
    }
}
