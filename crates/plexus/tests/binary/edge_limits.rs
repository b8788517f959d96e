//! The limits of the HTTP edge: on unread responses, strangers, and what one principal may take.

use serde_json::json;

use crate::edge::{
    ACCEPT_ALL, ACCEPT_JSON, Connection, SETTINGS, listening, resume, session, streamed_call,
};
use crate::home::Home;

/// More than the buffers of a connection take while its client does not read.
const LARGE_BYTES: usize = 12_000_000;

/// A call whose answer has at least `bytes`.
fn large_call(bytes: usize) -> String {
    let params = json!({"name": "echo_echo", "arguments": {"message": "x".repeat(bytes)}});
    json!({"jsonrpc": "2.0", "id": "large", "method": "tools/call", "params": params}).to_string()
}

/// Settings with which a large call is answered, and these.
fn large_messages(settings: &str) -> String {
    format!("[limits]\nmax_message_bytes = 20000000\nmax_answer_bytes = 60000000\n{settings}\n")
}

/// The headers of a token that is made for this.
fn token(home: &Home, name: &str) -> String {
    let made = home.start(&["token", "add", name]).end();
    format!("Authorization: Bearer {}\r\n", made.stdout.join(""))
}

/// A client that does not read its response is disconnected after the write timeout.
#[test]
fn a_client_that_does_not_read_is_closed() {
    let settings = large_messages("write_timeout_seconds = 1");
    let home = Home::with(&[(SETTINGS, &settings)]);
    let arguments = ["serve", "--http", "127.0.0.1:0", "--log-level", "debug"];
    let plexus = home.start(&arguments);
    let address = listening(&plexus);
    let session = session(&address, "");
    let mut connection = Connection::to(&address);
    let headers = format!("{session}{ACCEPT_JSON}");
    connection.send("POST", &headers, &large_call(LARGE_BYTES));
    plexus.wait_for_stderr("the client does not read its response");
    let received = connection.read_to_end();
    assert!(received.len() < LARGE_BYTES, "it was sent whole");
}

/// The responses that wait for clients are limited in bytes together: the client that has not read for
/// the longest time is disconnected, and the last one gets its response.
#[test]
fn unread_responses_are_limited_together() {
    let settings = large_messages("max_unread_bytes = 30000000");
    let home = Home::with(&[(SETTINGS, &settings)]);
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0"]);
    let address = listening(&plexus);
    let session = session(&address, "");
    let headers = format!("{session}{ACCEPT_JSON}");
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::to(&address);
        connection.send("POST", &headers, &large_call(LARGE_BYTES));
        connection.read_until("\r\n\r\n");
        connections.push(connection);
    }
    let mut last = connections.pop().unwrap();
    let first = connections.remove(0);
    assert!(first.read_to_end().len() < LARGE_BYTES, "the first is kept");
    last.read_until("xxx\"}]");
}

/// A client without credentials gets one response on a connection.
#[test]
fn a_stranger_cannot_keep_a_connection() {
    let home = Home::with(&[]);
    let token = token(&home, "laptop");
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--require-token"]);
    let address = listening(&plexus);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (method, headers, status) in [
        ("POST", ACCEPT_ALL, 401),
        ("POST", "Authorization: Bearer made-up\r\n", 401),
        ("PUT", ACCEPT_ALL, 405),
    ] {
        let mut stranger = Connection::to(&address);
        stranger.send(method, headers, ping);
        // A connection that is kept is closed after 30 s, which is later than the timeout here.
        let answer = stranger.read_to_end();
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&line), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    let session = session(&address, &token);
    let mut admitted = Connection::to(&address);
    for _ in 0..2 {
        admitted.send("POST", &format!("{session}{ACCEPT_JSON}"), ping);
        admitted.read_until("\"result\"");
        admitted.received.clear();
    }
}

/// A principal that keeps many messages loses its own, not those of another principal.
#[test]
fn messages_of_other_principals_are_kept() {
    let home = Home::with(&[(SETTINGS, "[limits]\nmax_replay_total_bytes = 1000000\n")]);
    let (calm, greedy) = (token(&home, "calm"), token(&home, "greedy"));
    let arguments = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--allow-bash",
        "--require-token",
    ];
    let plexus = home.start(&arguments);
    let address = listening(&plexus);
    let (calm, greedy) = (session(&address, &calm), session(&address, &greedy));
    let mut connections = Vec::new();
    for (id, session) in [&calm].into_iter().chain([&greedy; 6]).enumerate() {
        let mut connection = Connection::to(&address);
        let headers = format!("{session}{ACCEPT_ALL}");
        connection.send("POST", &headers, &streamed_call(id, 150_000));
        connection.read_until(&format!("\"id\":{id},"));
        connections.push(connection);
    }
    assert_eq!(resume(&address, &greedy, "1-0").0, 400);
    let (status, text) = resume(&address, &calm, "1-0");
    assert_eq!(status, 200, "the oldest of all: {text}");
}

/// A principal with more sessions than its quota loses its longest idle one, though there is room.
#[test]
fn a_principal_has_a_quota_of_sessions() {
    let home = Home::with(&[(SETTINGS, "[limits]\nmax_sessions_per_principal = 2\n")]);
    let (calm, greedy) = (token(&home, "calm"), token(&home, "greedy"));
    let plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--require-token"]);
    let address = listening(&plexus);
    let calm = session(&address, &calm);
    let greedy = [(); 3].map(|()| session(&address, &greedy));
    let status = |session: &str| {
        let mut connection = Connection::to(&address);
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let headers = format!("{session}{ACCEPT_JSON}Connection: close\r\n");
        connection.send("POST", &headers, ping);
        let answer = connection.read_to_end();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        greedy.each_ref().map(|session| status(session)),
        ["404", "200", "200"]
    );
    assert_eq!(status(&calm), "200");
}
