//! Holds many legacy sessions open on a server, and many calls in flight, and reports the memory
//! that the server needs for them. Every answer is matched to its request.

#[path = "load/connection.rs"]
mod connection;
#[path = "load/memory.rs"]
mod memory;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use connection::{Connection, Stream};

/// Opens sessions and has calls in flight on a server that has the tool `test_slow`.
#[derive(Debug, Clone, Parser)]
#[command(version)]
struct Arguments {
    /// The address that the server listens on.
    #[arg(value_name = "ADDR")]
    server: SocketAddr,
    /// The path of its MCP endpoint.
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// How many idle sessions are held open.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    sessions: usize,
    /// How many of them also have their event stream open, each on a connection.
    #[arg(long, value_name = "N", default_value_t = 0)]
    streams: usize,
    /// How many calls are in flight at once, each on a connection.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    calls: usize,
    /// How long each call takes, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    takes: u64,
    /// Over how many connections the sessions are opened.
    #[arg(long, value_name = "N", default_value_t = 32)]
    openers: usize,
    /// The process of the server, if its memory is to be told.
    #[arg(long)]
    pid: Option<u32>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the figures are the output")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    ensure!(
        arguments.sessions >= arguments.streams.max(1),
        "every stream needs a session"
    );
    let memory = || arguments.pid.and_then(memory::resident);
    let before = memory();

    let started = Instant::now();
    let sessions = open_sessions(&arguments).await?;
    let idle = memory();
    println!(
        "{} idle sessions opened in {:.1?}",
        sessions.len(),
        started.elapsed()
    );
    tell("before", before);
    tell("with idle sessions", idle);
    if let (Some(before), Some(idle)) = (before, idle) {
        let each = idle.saturating_sub(before) / sessions.len() as u64;
        println!("  {each} bytes for each idle session");
    }

    let streams = open_streams(&arguments, &sessions).await?;
    if !streams.is_empty() {
        println!("{} of them with an open stream", streams.len());
        let listening = memory();
        tell("with open streams", listening);
        if let (Some(idle), Some(listening)) = (idle, listening) {
            let each = listening.saturating_sub(idle) / streams.len() as u64;
            println!("  {each} bytes for each open stream");
        }
    }

    let started = Instant::now();
    let calls = Calls::begin(&arguments, &sessions).await?;
    tokio::time::sleep(Duration::from_millis(arguments.takes / 2)).await;
    let busy = memory();
    let answered = calls.finish().await?;
    println!(
        "{answered} calls in flight at once, answered after {:.1?}",
        started.elapsed()
    );
    tell("with calls in flight", busy);

    check_alive(&arguments, &sessions).await?;
    tell("at the end", memory());
    println!("every answer matched its request; every session lives");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures are the output")]
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn tell(when: &str, resident: Option<u64>) {
    if let Some(bytes) = resident {
        println!(
            "  {:.1} MiB resident {when}",
            bytes as f64 / 1024.0 / 1024.0
        );
    }
}

/// Opens all sessions. Returns their ids, after checking that they are distinct.
async fn open_sessions(arguments: &Arguments) -> anyhow::Result<Vec<String>> {
    let mut openers = JoinSet::new();
    for opener in 0..arguments.openers {
        let share = (opener..arguments.sessions).step_by(arguments.openers.max(1));
        let Arguments { server, path, .. } = arguments.clone();
        openers.spawn(async move {
            let mut connection = Connection::open(server, path).await?;
            let mut opened = Vec::new();
            for number in share {
                opened.push(initialize(&mut connection, number).await?);
            }
            anyhow::Ok(opened)
        });
    }
    let mut sessions = Vec::with_capacity(arguments.sessions);
    while let Some(opened) = openers.join_next().await {
        sessions.extend(opened??);
    }
    let distinct: HashSet<_> = sessions.iter().collect();
    ensure!(
        distinct.len() == arguments.sessions,
        "two sessions have the same id"
    );
    Ok(sessions)
}

async fn initialize(connection: &mut Connection, number: usize) -> anyhow::Result<String> {
    let params = json!({
        "protocolVersion": connection::VERSION,
        "capabilities": {},
        "clientInfo": {"name": "plexus-load", "version": env!("CARGO_PKG_VERSION")},
    });
    let request = json!({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params});
    let answer = connection.post(None, &request).await?;
    ensure!(
        is_answer(&answer.message, &json!(number)),
        "not the answer to {number}: {}",
        answer.message
    );
    let session = answer.session.context("no session id")?;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    connection.post(Some(&session), &initialized).await?;
    Ok(session)
}

async fn open_streams(arguments: &Arguments, sessions: &[String]) -> anyhow::Result<Vec<Stream>> {
    let mut streams = Vec::with_capacity(arguments.streams);
    for session in sessions.iter().take(arguments.streams) {
        let connection = Connection::open(arguments.server, arguments.path.clone()).await?;
        streams.push(connection.listen(session).await?);
    }
    Ok(streams)
}

/// Calls in flight, each on its own connection. Sessions are shared if there are fewer than calls.
struct Calls {
    running: JoinSet<anyhow::Result<()>>,
}

impl Calls {
    /// Opens all connections, then sends all calls.
    async fn begin(arguments: &Arguments, sessions: &[String]) -> anyhow::Result<Self> {
        let mut connections = Vec::with_capacity(arguments.calls);
        for (number, session) in (0..arguments.calls).zip(sessions.iter().cycle()) {
            let connection = Connection::open(arguments.server, arguments.path.clone()).await?;
            connections.push((number, session.clone(), connection));
        }
        let takes = arguments.takes;
        let mut running = JoinSet::new();
        for (number, session, mut connection) in connections {
            running.spawn(async move {
                let id = format!("call-{number}");
                // Each call has its own duration, which the answer repeats: it identifies the call.
                let takes = takes + number as u64;
                let call = slow_call(&id, takes);
                let answer = connection.post(Some(&session), &call).await?.message;
                ensure!(
                    is_answer(&answer, &json!(id)),
                    "not the answer to {id}: {answer}"
                );
                let text = answer.pointer("/result/content/0/text");
                ensure!(
                    text == Some(&json!(format!("Slept for {takes} ms"))),
                    "not of {id}: {answer}"
                );
                Ok(())
            });
        }
        Ok(Self { running })
    }

    async fn finish(mut self) -> anyhow::Result<usize> {
        let mut answered = 0;
        while let Some(done) = self.running.join_next().await {
            done??;
            answered += 1;
        }
        Ok(answered)
    }
}

fn slow_call(id: &str, takes: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "test_slow", "arguments": {"ms": takes}}})
}

/// Checks that every session still answers a ping.
async fn check_alive(arguments: &Arguments, sessions: &[String]) -> anyhow::Result<()> {
    let mut connection = Connection::open(arguments.server, arguments.path.clone()).await?;
    for (number, session) in sessions.iter().enumerate() {
        let ping = json!({"jsonrpc": "2.0", "id": number, "method": "ping"});
        let answer = connection.post(Some(session), &ping).await?.message;
        ensure!(
            is_answer(&answer, &json!(number)),
            "session {number} is dead: {answer}"
        );
    }
    Ok(())
}

/// Whether `message` is the result of the request with this id.
fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("result").is_some() && message.get("id") == Some(id)
}
