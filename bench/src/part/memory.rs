//! Memory: idle, and for each idle session.

use std::time::Duration;

use anyhow::ensure;

use crate::bench::Bench;
use crate::load::http::{Blocking, Session, Target};
use crate::message::{Era, SIZES};
use crate::process::{Memory, allow_many_files, pause};
use crate::results::{Figures, figures, ratio};
use crate::servers::{self, PATH, Server};
use crate::stage::Listening;

pub(crate) const PART: &str = "memory";
pub(crate) const IDLE: &str = "idle";
pub(crate) const SESSIONS: &str = "10,000 idle sessions";
pub(crate) const BUSY: &str = "after 16 connections with 1 MiB";
pub(crate) const STREAMS: &str = "idle sessions with their GET stream";

const IDLE_SESSIONS: usize = 10_000;
/// Streams need a connection each, and as many files at both ends.
const MOST_STREAMS: usize = 2_000;

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
        bench.measure(PART, IDLE, server.name, |_| idle(&up));
        let mut opened = Vec::new();
        bench.measure(PART, SESSIONS, server.name, |_| sessions(&up, &mut opened));
        if !opened.is_empty() {
            bench.measure(PART, STREAMS, server.name, |bench| {
                streams(bench, &server, &up, &opened)
            });
        }
        bench.measure(PART, BUSY, server.name, |bench| busy(bench, &server));
    }
}

/// After a client has come and gone.
fn idle(up: &Listening) -> anyhow::Result<Figures> {
    let mut connection = Blocking::open(up.address)?;
    drop(Session::open(&mut connection, PATH)?);
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
        is_limit: false,
        process: up.process.id(),
    };
    bench.load(&target, &server.echo(SIZES[2], false), 16)?;
    let memory = Memory::of(up.process.id())?;
    Ok(figures([("peak_mib", mebibytes(memory.peak))]))
}

fn sessions(up: &Listening, opened: &mut Vec<Session>) -> anyhow::Result<Figures> {
    let before = Memory::of(up.process.id())?.resident;
    let mut connection = Blocking::open(up.address)?;
    for _ in 0..IDLE_SESSIONS {
        let session = Session::open(&mut connection, PATH)?;
        ensure!(session.id.is_some(), "it has no sessions in this mode");
        opened.push(session);
    }
    let after = Memory::of(up.process.id())?.resident;
    let each = ratio(after.saturating_sub(before), IDLE_SESSIONS as u64) / 1024.0;
    Ok(figures([("each_kib", each)]))
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
    let mut connections = Vec::new();
    for session in opened.iter().take(most) {
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
    let after = Memory::of(up.process.id())?.resident;
    let stream = ratio(after.saturating_sub(before), connections.len() as u64) / 1024.0;
    let session = bench
        .results
        .figure(PART, SESSIONS, server.name, "each_kib");
    Ok(figures([(
        "each_kib",
        stream + session.unwrap_or_default(),
    )]))
}

fn mebibytes(bytes: u64) -> f64 {
    ratio(bytes, 1024 * 1024)
}
