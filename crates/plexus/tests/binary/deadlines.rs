//! `plexus serve` answers the handshake within two seconds, and ends within two seconds, whatever its
//! servers and its client do. `plexus bridge` ends within two seconds, too.

use std::io;
use std::time::Duration;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, tool};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway::{LIST, call, definition, echoing, file};
use crate::home::Home;
use crate::process::Plexus;

/// Many clients give up, or kill the program, after this long.
const DEADLINE: Duration = Duration::from_secs(2);

/// A shell script that ignores the end of its input and signals.
const STUBBORN: &str = "trap '' TERM INT; \"$@\"; sleep 60";

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// How a client ends the program.
#[derive(Debug, Clone, Copy)]
enum End {
    Input,
    Signal(Signal),
}

const ENDS: [End; 3] = [
    End::Input,
    End::Signal(Signal::TERM),
    End::Signal(Signal::INT),
];

/// The arguments of `sh` that make it run `script` with the command of the server.
fn wrapping(server: &StdioServer, script: &str) -> Vec<String> {
    let words = ["-c".to_owned(), script.to_owned(), "sh".to_owned()];
    let mut words = Vec::from(words);
    words.push(StdioServer::command());
    words.extend(server.arguments().iter().cloned());
    words
}

/// The definition of the server, started by a shell that runs `script`.
fn wrapped(server: &StdioServer, script: &str) -> Value {
    json!({"command": "sh", "args": wrapping(server, script)})
}

/// `plexus bridge` over stdio, with a server that a shell starts by running `script`.
fn bridge(home: &Home, server: &StdioServer, script: &str) -> Plexus {
    let words = wrapping(server, script);
    let words = words.iter().map(String::as_str);
    let mut arguments = vec!["bridge", "--stdio", "--log-level", "info", "--", "sh"];
    arguments.extend(words);
    home.start(&arguments)
}

fn assert_in_time(began: Instant, what: &str) {
    let took = began.elapsed();
    assert!(took < DEADLINE, "{what}: {took:?}");
}

/// Neither `initialize` nor `server/discover` waits for a server that never answers, nor for one that
/// needs long to start.
#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_waits_for_no_server() {
    let (silent, slow) = (StdioServer::new(Script::silent()).await, echoing().await);
    let mut servers = [
        ("silent", definition(&silent)),
        ("slow", wrapped(&slow, "sleep 60; exec \"$@\"")),
    ];
    for (_, server) in &mut servers {
        server["startup_wait"] = json!(60);
    }
    let home = Home::with(&[(".mcp.json", &file(&servers))]);
    for request in [INITIALIZE, DISCOVER] {
        let mut program = home.start(&["serve", "--stdio"]);
        // The start of the program itself does not count.
        assert_eq!(program.ask(PING)["id"], "p");
        let process = silent.process().await;
        process.received("server/discover").await;
        let began = Instant::now();
        let answer = program.ask(request);
        assert_in_time(began, request);
        assert!(answer["result"].is_object(), "{answer}");
        program.kill();
        process.ended().await;
    }
}

/// A client that disconnects, or a signal, while a server is starting: the exit waits neither for
/// the server nor for calls, and no process is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_starting_holds_up_no_end() {
    for end in ENDS {
        let server = StdioServer::new(Script::silent()).await;
        let home = Home::with(&[(".mcp.json", &file(&[("slow", definition(&server))]))]);
        let mut program = home.start(&["serve", "--stdio"]);
        program.initialize("2025-06-18");
        program.send(&call("slow__work", 5));
        let process = server.process().await;
        process.received("server/discover").await;
        let began = Instant::now();
        match end {
            End::Input => program.close_stdin(),
            End::Signal(signal) => program.signal(signal),
        }
        assert_eq!(program.wait().code, Some(0), "{end:?}");
        assert_in_time(began, &format!("{end:?}"));
        process.ended().await;
    }
}

/// The client reads nothing, a call is in flight, and its server ignores the end of its input and
/// SIGTERM.
#[tokio::test(flavor = "multi_thread")]
async fn the_slowest_end_is_in_time() {
    /// The answers fill the client's pipe, but not the queue of the program, which would not read on.
    const LISTS: usize = 2;
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    for end in ENDS {
        let server = StdioServer::new(Script::silent()).await;
        let stubborn = wrapped(&server, "trap '' TERM; \"$@\"; sleep 60");
        let home = Home::with(&[(".mcp.json", &file(&[("stubborn", stubborn)]))]);
        let (unread, stdout) = io::pipe().unwrap();
        let mut program = home.start_into(stdout, &["serve", "--stdio"]);
        program.send(INITIALIZE);
        program.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let process = server.process().await;
        let discover = process.received("server/discover").await;
        let refusal = offer.answer("server/discover").unwrap_err();
        process.refuse(&discover, refusal).await;
        for method in ["initialize", "tools/list"] {
            let request = process.received(method).await;
            process.reply(&request, offer.answer(method).unwrap()).await;
        }
        program.send(&call("stubborn__work", 5));
        process.received("tools/call").await;
        for _ in 0..LISTS {
            program.send(LIST);
        }
        let began = Instant::now();
        match end {
            End::Input => program.close_stdin(),
            End::Signal(signal) => program.signal(signal),
        }
        program.wait();
        assert_in_time(began, &format!("{end:?}"));
        drop(unread);
        process.ended().await;
    }
}

/// `plexus bridge` ends in time while its first connection is being made, although the server ignores
/// the end of its input and signals.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_connection_holds_up_no_end() {
    for end in ENDS {
        let server = StdioServer::new(Script::silent()).await;
        let home = Home::with(&[]);
        let mut program = bridge(&home, &server, STUBBORN);
        let process = server.process().await;
        process.received("server/discover").await;
        let began = Instant::now();
        match end {
            End::Input => program.close_stdin(),
            End::Signal(signal) => program.signal(signal),
        }
        assert_eq!(program.wait().code, Some(0), "{end:?}");
        assert_in_time(began, &format!("{end:?}"));
        process.ended().await;
    }
}

/// A second signal does not wait for the server to end, and gives the exit code of the signal.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_first_connection_at_once() {
    let server = StdioServer::new(Script::silent()).await;
    let home = Home::with(&[]);
    let mut program = bridge(&home, &server, STUBBORN);
    let process = server.process().await;
    process.received("server/discover").await;
    program.signal(Signal::TERM);
    program.wait_for_stderr("shutting down");
    program.signal(Signal::TERM);
    assert_eq!(program.wait().code, Some(128 + 15));
    process.ended().await;
}

/// A client that closes its end at once is still answered, if the server is connected in time.
#[tokio::test(flavor = "multi_thread")]
async fn requests_before_the_first_connection_are_answered_after_the_end_of_input() {
    let server = StdioServer::new(Script::silent()).await;
    let settings = "[limits]\nshutdown_drain_seconds = 30\n";
    let home = Home::with(&[(".config/plexus/plexus.toml", settings)]);
    let mut program = bridge(&home, &server, "exec \"$@\"");
    program.send(INITIALIZE);
    program.close_stdin();
    let process = server.process().await;
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let discover = process.received("server/discover").await;
    let refusal = offer.answer("server/discover").unwrap_err();
    process.refuse(&discover, refusal).await;
    for method in ["initialize", "tools/list"] {
        let request = process.received(method).await;
        process.reply(&request, offer.answer(method).unwrap()).await;
    }
    let ended = program.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.len(), 1, "{ended:?}");
    assert!(ended.stdout[0].contains("serverInfo"), "{ended:?}");
}
