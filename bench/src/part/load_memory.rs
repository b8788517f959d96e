//! Memory of whole processes, with their children: before a load, during it, and when it is over.

use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use plexus_mcp_protocol::Era;
use tokio::time::Instant;

use super::gateway::{prefixed, target, through};
use super::memory::{mebibytes, start_with_stdio_upstream};
use crate::bench::{Bench, print_progress};
use crate::gateways::{self, UpstreamTransport};
use crate::launcher::ListeningProcess;
use crate::load::READY_TIMEOUT;
use crate::load::http::{self, Target};
use crate::message::SIZES;
use crate::placement::Seat;
use crate::process::pause;
use crate::results::{Figures, figures};
use crate::servers::{self, PATH};
use crate::usage::{Memory, ProcessTree, memory_of};

pub(crate) const PART: &str = "load-memory";

const BEFORE: &str = "before the load";
const PEAK: &str = "peak under load";
const AFTER: &str = "60 s after the load";

/// The load: many connections with short answers, then some with long answers.
const LOADS: [(usize, usize); 2] = [(256, SIZES[0]), (16, SIZES[2])];

/// A running subject.
struct Loaded {
    name: &'static str,
    /// The prefix of the names of its tools.
    prefix: &'static str,
    target: Target,
    up: ListeningProcess,
}

/// A subject that rests after its load. It runs until this is dropped.
struct Resting {
    subject: Loaded,
    after: JoinHandle<anyhow::Result<Memory>>,
}

/// Measures all subjects under load, one after the other, and each again when it has rested. All of
/// them rest for the same time: the later ones are loaded meanwhile.
pub(crate) fn round(bench: &mut Bench) {
    let mut subjects = Vec::new();
    for server in servers::all(&bench.paths) {
        if !server.is_limit() {
            let up = bench.launcher.listen(&server.json, Seat::Subject);
            let loaded = up.map(|up| Loaded {
                name: server.name,
                prefix: "",
                target: target(&up, PATH, Era::Handshake),
                up,
            });
            load(bench, server.name, loaded, &mut subjects);
        }
    }
    for gateway in gateways::all(&bench.paths, UpstreamTransport::Stdio) {
        let up = start_with_stdio_upstream(bench, &gateway);
        let loaded = up.map(|up| Loaded {
            name: gateway.name,
            prefix: gateway.prefix,
            target: through(&gateway, &up, Era::Handshake),
            up,
        });
        load(bench, gateway.name, loaded, &mut subjects);
    }
    if !subjects.is_empty() {
        print_progress("waiting until all subjects have rested");
    }
    for Resting { subject, after } in subjects {
        bench.measure(PART, AFTER, subject.name, |_| {
            let memory = after.join();
            let panicked = || Err(anyhow::anyhow!("the measuring thread panicked"));
            Ok(resident(memory.unwrap_or_else(|_| panicked())?))
        });
    }
}

/// Measures a subject before and during its load, and lets it rest.
fn load(
    bench: &mut Bench,
    name: &str,
    started: anyhow::Result<Loaded>,
    resting: &mut Vec<Resting>,
) {
    let subject = match started {
        Ok(subject) => subject,
        Err(error) => return bench.measure(PART, BEFORE, name, |_| Err(error)),
    };
    bench.measure(PART, BEFORE, name, |_| {
        let job = prefixed(subject.prefix, SIZES[0]);
        http::await_answer(&subject.target, &job, READY_TIMEOUT)?;
        Ok(resident(memory_of(subject.up.process.id())?))
    });
    bench.measure(PART, PEAK, name, |bench| peak(bench, &subject));
    let loaded = Instant::now();
    if let Some(time) = bench.effort.settling_time
        && !bench.has_failed(PART, PEAK, name)
    {
        let after = memory_at(loaded + time, subject.up.process.id());
        resting.push(Resting { subject, after });
    }
}

/// The memory of a process at a time, measured by a thread.
fn memory_at(due: Instant, process: u32) -> JoinHandle<anyhow::Result<Memory>> {
    thread::spawn(move || {
        pause(due.saturating_duration_since(Instant::now()));
        memory_of(process)
    })
}

fn resident(memory: Memory) -> Figures {
    figures([("resident_mib", mebibytes(memory.resident))])
}

fn peak(bench: &Bench, subject: &Loaded) -> anyhow::Result<Figures> {
    let process = subject.up.process.id();
    ProcessTree::of(process)?.forget_peak()?;
    let mut peak = 0;
    for (connections, bytes) in LOADS {
        let job = prefixed(subject.prefix, bytes);
        bench
            .load(&subject.target, &job, connections)
            .with_context(|| format!("{connections} connections with {bytes} B"))?;
        peak = peak.max(memory_of(process)?.peak);
    }
    Ok(figures([("peak_mib", mebibytes(peak))]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn memory_is_measured_when_it_is_due() {
        let began = Instant::now();
        let process = std::process::id();
        // The later one is started first.
        let later = memory_at(began + Duration::from_millis(200), process);
        let sooner = memory_at(began, process);
        assert!(sooner.join().unwrap().unwrap().resident > 0);
        assert!(later.join().unwrap().unwrap().resident > 0);
        assert!(began.elapsed() >= Duration::from_millis(200));
    }
}
