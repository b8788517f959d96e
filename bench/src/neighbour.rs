//! A busy neighbour: a process with one thread that uses as much CPU time as it gets.

use std::time::Duration;

use tokio::time::Instant;

use crate::bench::Bench;
use crate::placement::Seat;
use crate::process::{Program, Running};

/// The neighbour ends after this time, even if nothing ends it.
const LIFETIME: Duration = Duration::from_mins(1);

/// Starts a neighbour, which is ended when the result is dropped.
pub(crate) fn start(bench: &Bench) -> anyhow::Result<Running> {
    let program = Program::new(&bench.paths.bench, &["neighbour"]);
    bench.launcher.start(&program, Seat::Subject)
}

/// Uses CPU time until `LIFETIME` is over.
pub(crate) fn run() {
    let began = Instant::now();
    while began.elapsed() < LIFETIME {
        // The clock is read rarely, because that is not what other programs do.
        for number in 0..100_000_u64 {
            std::hint::black_box(number.wrapping_mul(number));
        }
    }
}
