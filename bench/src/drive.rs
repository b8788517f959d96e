//! `plexus-bench drive`: load on a server that somebody looks into with a profiler meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::load::Load;
use crate::load::http::{self, Target};
use crate::message::{Era, Job};
use crate::results::of_load;

/// Whom to drive, and how.
#[derive(Debug, Args)]
pub(crate) struct DriveArgs {
    /// Where the server listens.
    address: SocketAddr,
    /// The process whose CPU time is told.
    process: u32,
    /// The path of its endpoint.
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// The tool that says back what it is told.
    #[arg(long, default_value = "echo_once")]
    tool: String,
    #[arg(long, value_enum, default_value = "stateless")]
    era: EraArg,
    /// How long the text is that is said back.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// How many connections there are, with one request in flight on each.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Ask for progress, so that the answer is an event stream.
    #[arg(long)]
    progress: bool,
    /// The server is `limit-http`, which says the same to everybody.
    #[arg(long)]
    limit: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EraArg {
    Handshake,
    Stateless,
}

/// Drives, and tells what it saw.
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub(crate) fn run(arguments: &DriveArgs) -> anyhow::Result<()> {
    let target = Target {
        address: arguments.address,
        path: arguments.path.clone(),
        era: match arguments.era {
            EraArg::Handshake => Era::Handshake,
            EraArg::Stateless => Era::Stateless,
        },
        handshake: Era::Handshake.revision(),
        streams: arguments.progress.then_some(true),
        is_limit: arguments.limit,
        process: arguments.process,
    };
    let job = Job::Echo {
        tools: vec![arguments.tool.clone()],
        argument: "message".to_owned(),
        bytes: arguments.bytes,
        with_progress: arguments.progress,
    };
    let load = Load {
        concurrency: arguments.connections,
        warm_up: Duration::from_millis(200),
        window: Duration::from_secs(arguments.seconds),
    };
    let seen = http::run(&target, &job, load)?;
    for (name, value) in of_load(&seen, arguments.bytes) {
        println!("{name} {value:.1}");
    }
    Ok(())
}
