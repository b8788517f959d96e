//! Memory: idle, and for each idle session.

use std::time::Duration;

use anyhow::ensure;
use plexus_mcp_protocol::Era;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::gateways::{self, BRIDGE, Gateway, UpstreamTransport};
use crate::launcher::ListeningProcess;
use crate::load::http::{BlockingConnection, SerialClient, Session};
use crate::many_tools::tool_name;
use crate::message::{Call, Job, SIZES};
use crate::placement::Seat;
use crate::process::{Program, allow_many_files, pause};
use crate::results::{Figures, figures, ratio};
use crate::servers::{self, PATH, Server};
use crate::usage::{ProcessTree, count_descendants, memory_of};

pub(crate) const PART: &str = "memory";
pub(crate) const IDLE: &str = "idle";

const SESSIONS: &str = "10,000 idle sessions";
const STREAMS: &str = "idle sessions with their GET stream";
const IDLE_GATEWAY: &str = "idle, in front of a stdio upstream";
const PROCESSES: &str = "processes for 16 clients of a stdio upstream";
const RESULT_COPIES: &str = "times that a result of 1 MiB is held by the gateway";

const IDLE_SESSIONS: usize = 10_000;
/// Each stream needs a connection, and so a file descriptor at both ends.
const MAX_STREAMS: usize = 2_000;
/// How long sessions and streams are opened. A slow rival has as many as it opened in this time.
const OPEN_TIMEOUT: Duration = Duration::from_secs(8);

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    let servers = servers::all(&bench.paths).into_iter();
    let mut measured: Vec<_> = servers.filter(|server| !server.is_limit()).collect();
    measured.push(servers::serve(&bench.paths));
    for server in measured {
        round_of(bench, &server);
    }
    for gateway in gateways::all(&bench.paths, UpstreamTransport::Stdio) {
        // Starting a gateway that does not work takes long.
        if bench.has_failed(PART, IDLE_GATEWAY, gateway.name) {
            continue;
        }
        match start_with_stdio_upstream(bench, &gateway) {
            Ok(up) => {
                bench.measure(PART, IDLE_GATEWAY, gateway.name, |_| {
                    idle(&up, gateway.path, gateway.handshake)
                });
                bench.measure(PART, PROCESSES, gateway.name, |bench| {
                    processes(bench, &gateway, &up)
                });
            }
            Err(error) => bench.measure(PART, IDLE_GATEWAY, gateway.name, |_| Err(error)),
        }
    }
    bench.measure(PART, RESULT_COPIES, BRIDGE, result_copies);
}

fn round_of(bench: &mut Bench, server: &Server) {
    // Some servers have no sessions if they answer in JSON.
    let up = match bench.launcher.listen(&server.stream, Seat::Subject) {
        Ok(up) => up,
        Err(error) => {
            bench.measure(PART, IDLE, server.name, |_| Err(error));
            return;
        }
    };
    bench.measure(PART, IDLE, server.name, |_| {
        idle(&up, PATH, Era::Handshake.newest_revision().as_str())
    });
    let mut opened = Vec::new();
    bench.measure(PART, SESSIONS, server.name, |_| {
        sessions(server, &up, &mut opened)
    });
    if !opened.is_empty() {
        bench.measure(PART, STREAMS, server.name, |bench| {
            streams(bench, server, &up, &opened)
        });
    }
}

/// Memory after a client has connected and disconnected.
fn idle(up: &ListeningProcess, path: &str, revision: &'static str) -> anyhow::Result<Figures> {
    let mut connection = BlockingConnection::open(up.address)?;
    Session::open(&mut connection, path, revision)?.end()?;
    drop(connection);
    pause(Duration::from_millis(300));
    let memory = memory_of(up.process.id())?;
    Ok(figures([("resident_mib", mebibytes(memory.resident))]))
}

fn sessions(
    server: &Server,
    up: &ListeningProcess,
    opened: &mut Vec<Session>,
) -> anyhow::Result<Figures> {
    let before = memory_of(up.process.id())?.resident;
    let mut connection = BlockingConnection::open(up.address)?;
    let began = Instant::now();
    while opened.len() < IDLE_SESSIONS && !(server.is_rival() && began.elapsed() > OPEN_TIMEOUT) {
        let session = Session::open(
            &mut connection,
            PATH,
            Era::Handshake.newest_revision().as_str(),
        )?;
        ensure!(session.id.is_some(), "it has no sessions in this mode");
        opened.push(session);
    }
    let more = memory_of(up.process.id())?.resident.saturating_sub(before);
    Ok(memory_per_item(more, opened.len()))
}

/// Memory of a session with a stream: the memory of the session plus what the stream adds.
fn streams(
    bench: &Bench,
    server: &Server,
    up: &ListeningProcess,
    opened: &[Session],
) -> anyhow::Result<Figures> {
    let most = MAX_STREAMS.min(allow_many_files().saturating_sub(200));
    let before = memory_of(up.process.id())?.resident;
    let began = Instant::now();
    let mut connections = Vec::new();
    for session in opened.iter().take(most) {
        if server.is_rival() && began.elapsed() > OPEN_TIMEOUT {
            break;
        }
        let mut connection = BlockingConnection::open(up.address)?;
        let answer = connection.begin(session.head("GET").as_bytes())?;
        ensure!(
            answer.status() == 200,
            "GET was refused with {}",
            answer.status()
        );
        connections.push(connection);
    }
    pause(Duration::from_millis(200));
    let more = memory_of(up.process.id())?.resident.saturating_sub(before);
    let mut figures = memory_per_item(more, connections.len());
    let session = bench
        .results
        .figure(PART, SESSIONS, server.name, "each_kib");
    if let Some(each) = figures.get_mut("each_kib") {
        *each += session.unwrap_or_default();
    }
    Ok(figures)
}

fn memory_per_item(bytes: u64, count: usize) -> Figures {
    let count = count as u64;
    let each = ratio(bytes, count) / 1024.0;
    figures([("each_kib", each), ("opened", ratio(count, 1))])
}

/// Starts a gateway in front of a server on stdio, for clients and servers of the handshake era.
pub(super) fn start_with_stdio_upstream(
    bench: &Bench,
    gateway: &Gateway,
) -> anyhow::Result<ListeningProcess> {
    let server = servers::upstream(&bench.paths);
    // The address is not used: the gateway starts the program itself.
    let nowhere = ([127, 0, 0, 1], 0).into();
    super::gateway::start(bench, gateway, &server, nowhere, Era::Handshake)
}

fn processes(bench: &Bench, gateway: &Gateway, up: &ListeningProcess) -> anyhow::Result<Figures> {
    let server = servers::upstream(&bench.paths);
    let target = super::gateway::through(gateway, up, Era::Handshake);
    let job = super::gateway::prefixed(gateway.prefix, SIZES[0]);
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = SerialClient::open(&target)?;
        client.check(&job)?;
        clients.push(client);
    }
    let count = count_descendants(up.process.id(), &server.stdio)?;
    Ok(figures([("processes", ratio(count as u64, 1))]))
}

/// The additional memory of the gateway while results of 1 MiB pass through it, in units of such a
/// result.
fn result_copies(bench: &Bench) -> anyhow::Result<Figures> {
    let launcher = &bench.launcher;
    let program = Program::new(&bench.paths.bench, &["many-tools", "127.0.0.1:{port}", "1"]);
    let upstream = launcher.listen(&program, Seat::Upstream)?;
    let url = format!("http://{}{PATH}", upstream.address);
    let program = Program::new(
        &bench.paths.plexus,
        &["bridge", "--http", "127.0.0.1:{port}", &url],
    );
    let up = launcher.listen(&program, Seat::Subject)?;
    let target = super::gateway::target(&up, PATH, Era::Handshake);
    // The request is small, so that only the result is held.
    let times = 255;
    let job = |bytes| {
        Job::Call(Call {
            times,
            ..Call::new(tool_name(0), bytes * times)
        })
    };
    let mut client = SerialClient::open(&target)?;
    for _ in 0..50 {
        client.check(&job(1))?;
    }
    let tree = ProcessTree::only(up.process.id());
    let before = tree.memory().resident;
    tree.forget_peak()?;
    for _ in 0..20 {
        client.check(&job(4096))?;
    }
    let more = tree.memory().peak.saturating_sub(before);
    Ok(figures([("times", ratio(more, 255 * 4096))]))
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    ratio(bytes, 1024 * 1024)
}
