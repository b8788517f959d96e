//! Servers over stdio.

use crate::bench::Bench;
use crate::load::stdio;
use crate::message::SIZES;
use crate::results::of_load;
use crate::servers;

pub(crate) const PART: &str = "stdio";

/// Requests in flight: one (a serial client), or several.
pub(crate) const IN_FLIGHT: [usize; 2] = [1, 32];

pub(crate) fn point(in_flight: usize) -> String {
    format!("100 B, {in_flight} in flight")
}

/// Runs one round. Each measurement starts its own process, since a process has one client.
pub(crate) fn round(bench: &mut Bench) {
    for in_flight in IN_FLIGHT {
        for server in servers::all(&bench.paths) {
            bench.measure(PART, &point(in_flight), server.name, |bench| {
                let core = bench.launcher.cores.subject;
                let mut process = bench.launcher.start(&server.stdio, core)?;
                let job = server.echo(SIZES[0], false);
                let load = bench.effort.load(in_flight);
                let measured = stdio::run(&mut process, &job, load, server.is_limit())?;
                Ok(of_load(&measured, SIZES[0]))
            });
        }
    }
}
