//! Servers over pipes.

use crate::bench::Bench;
use crate::load::stdio;
use crate::message::SIZES;
use crate::results::of_load;
use crate::servers;

pub(crate) const PART: &str = "stdio";

/// Requests in flight: a client that waits for each answer, and one that does not.
pub(crate) const IN_FLIGHT: [usize; 2] = [1, 32];

pub(crate) fn point(in_flight: usize) -> String {
    format!("100 B, {in_flight} in flight")
}

/// One round: a process for each measurement, as one process has one client.
pub(crate) fn round(bench: &mut Bench) {
    for in_flight in IN_FLIGHT {
        for server in servers::all(&bench.places) {
            bench.measure(PART, &point(in_flight), server.name, |bench| {
                let core = bench.stage.cores.subject;
                let mut process = bench.stage.start(&server.stdio, core)?;
                let job = server.echo(SIZES[0], false);
                let load = bench.effort.load(in_flight);
                let seen = stdio::run(&mut process, &job, load, server.is_limit())?;
                Ok(of_load(&seen, SIZES[0]))
            });
        }
    }
}
