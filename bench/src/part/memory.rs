//! Memory: idle, and for each idle session.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::gateways::{self, BRIDGE, Behind, Gateway};
use crate::load::http::{Asking, Blocking, Session, Target};
use crate::message::{Era, Job, SIZES};
use crate::process::{Memory, Program, allow_many_files, count_descendants, pause};
use crate::results::{Figures, figures, ratio};
use crate::servers::{self, PATH, Server};
use crate::stage::Listening;

pub(crate) const PART: &str = "memory";
pub(crate) const IDLE: &str = "idle";
pub(crate) const SESSIONS: &str = "10,000 idle sessions";
pub(crate) const BUSY: &str = "after 16 connections with 1 MiB";
pub(crate) const STREAMS: &str = "idle sessions with their GET stream";

const IDLE_GATEWAY: &str = "idle, in front of a stdio upstream";
pub(crate) const PROCESSES: &str = "processes for 16 clients of a stdio upstream";
pub(crate) const HELD: &str = "times that a result of 1 MiB is held by the gateway";

const IDLE_SESSIONS: usize = 10_000;
/// Streams need a connection each, and as many files at both ends.
const MOST_STREAMS: usize = 2_000;
/// Slow rivals have as many sessions and streams as they open in this time.
const TIME_TO_OPEN: Duration = Duration::from_secs(8);

/// One round.
pub(crate) fn round(bench: &mut Bench) {
    for server in servers::all(&bench.places) {
        if server.is_limit() {
            continue;
        }
        // Some have no sessions where they answer in JSON.
        let up = bench
            .stage
            .listen(&server.stream, bench.stage.cores.subject);
        let up = match up {
            Ok(up) => up,
            Err(error) => {
                bench.measure(PART, IDLE, server.name, |_| Err(error));
                continue;
            }
        };
        bench.measure(PART, IDLE, server.name, |_| {
            idle(&up, PATH, Era::Handshake.revision())
        });
        let mut opened = Vec::new();
        bench.measure(PART, SESSIONS, server.name, |_| {
            sessions(&server, &up, &mut opened)
        });
        if !opened.is_empty() {
            bench.measure(PART, STREAMS, server.name, |bench| {
                streams(bench, &server, &up, &opened)
            });
        }
        bench.measure(PART, BUSY, server.name, |bench| busy(bench, &server));
    }
    for gateway in gateways::all(&bench.places, Behind::Stdio) {
        match in_front_of_a_program(bench, &gateway) {
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
    bench.measure(PART, HELD, BRIDGE, held);
}

/// After a client has come and gone.
fn idle(up: &Listening, path: &str, revision: &'static str) -> anyhow::Result<Figures> {
    let mut connection = Blocking::open(up.address)?;
    Session::open(&mut connection, path, revision)?.end()?;
    drop(connection);
    pause(Duration::from_millis(300));
    let memory = Memory::of(up.process.id())?;
    Ok(figures([("resident_mib", mebibytes(memory.resident))]))
}

/// The most that it had while it worked hard.
fn busy(bench: &Bench, server: &Server) -> anyhow::Result<Figures> {
    let up = bench
        .stage
        .listen(&server.json, bench.stage.cores.subject)?;
    let target = Target {
        address: up.address,
        path: PATH.to_owned(),
        era: Era::Handshake,
        handshake: Era::Handshake.revision(),
        streams: None,
        is_limit: false,
        process: up.process.id(),
    };
    bench.load(&target, &server.echo(SIZES[2], false), 16)?;
    let memory = Memory::of(up.process.id())?;
    Ok(figures([("peak_mib", mebibytes(memory.peak))]))
}

fn sessions(server: &Server, up: &Listening, opened: &mut Vec<Session>) -> anyhow::Result<Figures> {
    let before = Memory::of(up.process.id())?.resident;
    let mut connection = Blocking::open(up.address)?;
    let began = Instant::now();
    while opened.len() < IDLE_SESSIONS && !(server.is_rival() && began.elapsed() > TIME_TO_OPEN) {
        let session = Session::open(&mut connection, PATH, Era::Handshake.revision())?;
        ensure!(session.id.is_some(), "it has no sessions in this mode");
        opened.push(session);
    }
    let more = Memory::of(up.process.id())?.resident.saturating_sub(before);
    Ok(of_each(more, opened.len()))
}

/// What a session with a stream needs in all: what the stream adds is added to what the session
/// needs.
fn streams(
    bench: &Bench,
    server: &Server,
    up: &Listening,
    opened: &[Session],
) -> anyhow::Result<Figures> {
    let most = MOST_STREAMS.min(allow_many_files().saturating_sub(200));
    let before = Memory::of(up.process.id())?.resident;
    let began = Instant::now();
    let mut connections = Vec::new();
    for session in opened.iter().take(most) {
        if server.is_rival() && began.elapsed() > TIME_TO_OPEN {
            break;
        }
        let mut connection = Blocking::open(up.address)?;
        let answer = connection.begin(session.head("GET").as_bytes())?;
        ensure!(
            answer.status() == 200,
            "GET was refused with {}",
            answer.status()
        );
        connections.push(connection);
    }
    pause(Duration::from_millis(200));
    let more = Memory::of(up.process.id())?.resident.saturating_sub(before);
    let mut figures = of_each(more, connections.len());
    let session = bench
        .results
        .figure(PART, SESSIONS, server.name, "each_kib");
    if let Some(each) = figures.get_mut("each_kib") {
        *each += session.unwrap_or_default();
    }
    Ok(figures)
}

fn of_each(bytes: u64, count: usize) -> Figures {
    let count = count as u64;
    let each = ratio(bytes, count) / 1024.0;
    figures([("each_kib", each), ("opened", ratio(count, 1))])
}

fn in_front_of_a_program(bench: &Bench, gateway: &Gateway) -> anyhow::Result<Listening> {
    let server = servers::upstream(&bench.places);
    // Nobody goes there: the gateway starts the program itself.
    let nowhere = ([127, 0, 0, 1], 0).into();
    super::gateway::start(bench, gateway, &server, nowhere, Era::Handshake)
}

fn processes(bench: &Bench, gateway: &Gateway, up: &Listening) -> anyhow::Result<Figures> {
    let server = servers::upstream(&bench.places);
    let target = super::gateway::through(gateway, up, Era::Handshake);
    let job = super::gateway::prefixed(&server, gateway.prefix);
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = Asking::open(&target)?;
        client.check(&job)?;
        clients.push(client);
    }
    let count = count_descendants(up.process.id(), &server.stdio)?;
    Ok(figures([("processes", ratio(count as u64, 1))]))
}

/// What the gateway needs more while results of 1 MiB pass through it, in units of such a result.
fn held(bench: &Bench) -> anyhow::Result<Figures> {
    let stage = &bench.stage;
    let program = Program::new(
        &bench.places.bench,
        &["many-tools", "127.0.0.1:{port}", "1"],
    );
    let upstream = stage.listen(&program, stage.cores.upstream)?;
    let url = format!("http://{}{PATH}", upstream.address);
    let program = Program::new(
        &bench.places.plexus,
        &["bridge", "--http", "127.0.0.1:{port}", &url],
    );
    let up = stage.listen(&program, stage.cores.subject)?;
    let target = super::gateway::target(&up, PATH, Era::Handshake);
    let job = |bytes| Job::Repeat {
        tool: "say_back_0000".to_owned(),
        bytes,
        times: 255,
    };
    let mut client = Asking::open(&target)?;
    for _ in 0..50 {
        client.check(&job(1))?;
    }
    let process = up.process.id();
    let before = Memory::of(process)?.resident;
    Memory::forget_peak(process)?;
    for _ in 0..20 {
        client.check(&job(4096))?;
    }
    let after = Memory::of(process)?.peak;
    let more = after.saturating_sub(before);
    Ok(figures([("times", ratio(more, 255 * 4096))]))
}

fn mebibytes(bytes: u64) -> f64 {
    ratio(bytes, 1024 * 1024)
}
