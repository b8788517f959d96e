//! An MCP server that records each execution of its tool, and can be killed at any time.
//!
//! `counting-server FILE [--http ADDRESS | --inherit] [--stateless] [--roots]` serves stdio, HTTP at
//! ADDRESS, or HTTP on the listening socket that is its standard input, which outlives the process.
//! Its tool `count` appends its argument `n` to FILE as one line, takes `ms` milliseconds, and
//! returns the process id and the highest number of calls that were in flight at the same time. With
//! `--roots`, a server over stdio requests the roots of its client after the handshake, outside of any
//! call, and each result says whether they were sent.

#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value gives null for what it lacks"
)]

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_mcp_protocol::{Era, Revision};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "usage: counting-server FILE [--http ADDRESS | --inherit] [--stateless] [--roots]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("counting-server: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or(USAGE)?;
    let (mut listener, mut revision, mut asks_roots) = (None, Revision::V2025_11_25, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--http" => listener = Some(TcpListener::bind(arguments.next().ok_or(USAGE)?)?),
            "--inherit" => listener = Some(rustix::io::dup(io::stdin())?.into()),
            "--stateless" => revision = Revision::V2026_07_28,
            "--roots" => asks_roots = true,
            _ => return Err(USAGE.into()),
        }
    }
    let server = Arc::new(Server {
        offer: Offer::tools(revision, [tool("count")]),
        executed: Mutex::new(File::options().create(true).append(true).open(path)?),
        in_flight: AtomicUsize::new(0),
        most_in_flight: AtomicUsize::new(0),
        has_roots: AtomicBool::new(false),
    });
    match listener {
        Some(listener) => serve_http(server, listener),
        None => serve_stdio(&server, asks_roots),
    }
}

struct Server {
    offer: Offer,
    /// One line for each execution.
    executed: Mutex<File>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    has_roots: AtomicBool,
}

impl Server {
    /// Answers a request. A call blocks the thread.
    fn answer(&self, request: &Value) -> Value {
        let method = request["method"].as_str().unwrap_or_default();
        let outcome = match method {
            "tools/call" => self.call(&request["params"]["arguments"]),
            "ping" => Ok(json!({})),
            _ => self.offer.answer(method),
        };
        let id = &request["id"];
        match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        }
    }

    fn call(&self, arguments: &Value) -> Result<Value, Value> {
        // One write, so that a kill cannot cut the line in half.
        let line = format!("{}\n", arguments["n"]);
        let written = {
            let mut executed = self.executed.lock().unwrap_or_else(PoisonError::into_inner);
            executed.write_all(line.as_bytes())
        };
        written.map_err(|error| json!({"code": -32603, "message": error.to_string()}))?;
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_in_flight.fetch_max(now, Ordering::SeqCst);
        work(Duration::from_millis(
            arguments["ms"].as_u64().unwrap_or_default(),
        ));
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        let counted = json!({
            "pid": std::process::id(),
            "mostInFlight": self.most_in_flight.load(Ordering::SeqCst),
            "hasRoots": self.has_roots.load(Ordering::SeqCst),
        });
        let text = json!([{"type": "text", "text": counted.to_string()}]);
        let mut result = json!({"content": text, "structuredContent": counted});
        if self.offer.revision.era() == Era::Stateless {
            result["resultType"] = json!("complete");
        }
        Ok(result)
    }
}

fn serve_stdio(server: &Arc<Server>, asks_roots: bool) -> Result<(), Failure> {
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let method = message["method"].as_str();
        if asks_roots && method == Some("notifications/initialized") {
            say(&json!({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}));
        }
        if method.is_none() {
            let has_roots = message["result"]["roots"].is_array();
            server.has_roots.fetch_or(has_roots, Ordering::SeqCst);
        }
        if method.is_none() || message["id"].is_null() {
            continue;
        }
        if method == Some("tools/call") {
            let server = Arc::clone(server);
            std::thread::spawn(move || say(&server.answer(&message)));
        } else {
            say(&server.answer(&message));
        }
    }
    Ok(())
}

fn serve_http(server: Arc<Server>, listener: TcpListener) -> Result<(), Failure> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let answer = move |request: &Received| reply(&server, request);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = HttpServer::start_on(listener, answer);
        report(&format!("listening on {}", server.url()));
        std::future::pending().await
    })
}

/// A server of the handshake era has sessions, which end with the process.
fn reply(server: &Server, request: &Received) -> Reply {
    let session = std::process::id().to_string();
    let has_sessions = server.offer.revision.era() == Era::Handshake;
    if has_sessions
        && request.mcp() != "initialize"
        && request.header("mcp-session-id") != Some(session.as_str())
    {
        return Reply::status(404);
    }
    match request.mcp() {
        "initialize" if has_sessions => request
            .reply_from(&server.offer)
            .with_header("mcp-session-id", &session),
        "tools/call" => Reply::json(&tokio::task::block_in_place(|| {
            server.answer(&request.body)
        })),
        "ping" => Reply::json(&server.answer(&request.body)),
        _ => request.reply_from(&server.offer),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "each call has a thread of its own, or blocks one that the runtime replaces"
)]
fn work(duration: Duration) {
    std::thread::sleep(duration);
}

/// A closed pipe is not an error.
fn say(message: &Value) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(format!("{message}\n").as_bytes()));
    drop(stdout.flush());
}

fn report(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}
