//! `plexus-bench drive`: puts load on a server, for use with a profiler.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use plexus_mcp_protocol::Era;

use crate::load::Load;
use crate::load::http::{self, Target};
use crate::message::{Call, Job, TOOL};
use crate::results::of_load;

/// The server to put load on, and the load.
#[derive(Debug, Args)]
pub(crate) struct DriveArgs {
    /// The address of the server.
    address: SocketAddr,
    /// The process id, for CPU time.
    process: u32,
    /// The path of its endpoint.
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// The tool, which repeats `text` as often as `times`.
    #[arg(long, default_value = TOOL)]
    tool: String,
    #[arg(long, default_value_t = Era::Stateless)]
    era: Era,
    /// The length of the text in the answers, in bytes.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// The number of connections, with one request in flight on each.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Ask for progress notifications, so that the response is an event stream.
    #[arg(long)]
    progress: bool,
    /// The server is `limit-http`, which sends the same response to every request.
    #[arg(long)]
    limit: bool,
}

/// Runs the load and prints the figures.
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub(crate) fn run(arguments: &DriveArgs) -> anyhow::Result<()> {
    let target = Target {
        address: arguments.address,
        path: arguments.path.clone(),
        era: arguments.era,
        handshake: Era::Handshake.newest_revision().as_str(),
        streams: arguments.progress.then_some(true),
        has_sessions: !arguments.limit,
        is_fixed: arguments.limit,
        process: arguments.process,
    };
    let job = Job::Call(Call {
        with_progress: arguments.progress,
        ..Call::new(&arguments.tool, arguments.bytes)
    });
    let load = Load {
        concurrency: arguments.connections,
        warm_up: Duration::from_millis(200),
        window: Duration::from_secs(arguments.seconds),
    };
    let measured = http::run(&target, &job, load)?;
    for (name, value) in of_load(&measured, arguments.bytes) {
        println!("{name} {value:.1}");
    }
    Ok(())
}
