//! Servers over stdio.

use crate::bench::Bench;
use crate::load::stdio;
use crate::message::SIZES;
use crate::placement::{Placement, Seat};
use crate::results::of_load;
use crate::servers;

pub(crate) const PART: &str = "stdio";

/// Requests in flight: one (a serial client), or several.
pub(crate) const IN_FLIGHT: [usize; 2] = [1, 32];

pub(crate) fn point(in_flight: usize, placement: Placement) -> String {
    format!("100 B, {in_flight} in flight{}", placement.suffix())
}

/// Runs one round. Each measurement starts its own process, since a process has one client.
pub(crate) fn round(bench: &mut Bench) {
    let placement = bench.launcher.placement();
    if bench.effort.quick && placement == Placement::OneCore {
        return;
    }
    for in_flight in IN_FLIGHT {
        let point = point(in_flight, placement);
        for server in servers::all(&bench.paths) {
            bench.measure(PART, &point, server.name, |bench| {
                let mut process = bench.launcher.start(&server.stdio, Seat::Subject)?;
                let job = servers::call(SIZES[0], false);
                let load = bench.effort.first_load(in_flight);
                let measured = stdio::run(&mut process, &job, load, server.is_limit())?;
                Ok(of_load(&measured, SIZES[0]))
            });
        }
    }
}
