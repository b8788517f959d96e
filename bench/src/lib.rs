//! Measures Plexus, its rivals and the limits of the machine with one load generator.
//!
//! Pinning processes to cores and reading their CPU time need Linux; on other systems this crate is
//! empty.

#![cfg(target_os = "linux")]

mod acceptance;
mod bench;
mod drive;
mod gateways;
mod growth;
mod histogram;
mod http_response;
mod launcher;
mod limit;
mod load;
mod many_tools;
mod message;
mod neighbour;
mod part;
mod placement;
mod process;
mod report;
mod results;
mod run;
mod run_metadata;
mod serve;
mod servers;
mod usage;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use drive::DriveArgs;
use process::Program;
use report::compare::compare;
use report::{Notes, Report};
use run::RunArgs;

/// Measures Plexus, its rivals and the limits of the machine with one load generator.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the benchmark and write its report.
    Run(RunArgs),
    /// Write the report of a saved run.
    Report {
        /// The file with the figures of the run.
        figures: PathBuf,
        /// The folder to write the report to.
        folder: PathBuf,
        /// A file with the causes of missed criteria, by their names.
        #[arg(long, value_name = "FILE")]
        causes: Option<PathBuf>,
        /// The file with the figures of a second run, to show how well the ratios are repeated.
        #[arg(long, value_name = "FILE")]
        second: Option<PathBuf>,
    },
    /// Compare the ratios of two runs.
    Compare {
        /// The file with the figures of the first run.
        first: PathBuf,
        /// The file with the figures of the second run.
        second: PathBuf,
    },
    /// Measure how cost grows with size, and fail if it grows too fast.
    Growth(growth::GrowthArgs),
    /// Be an MCP server over stdio with many tools.
    GrowthUpstream { tools: u32 },
    /// Put load on a running server, for use with a profiler.
    Drive(DriveArgs),
    /// Answer every HTTP request with a fixed body.
    LimitHttp {
        address: SocketAddr,
        /// The file to serve at /file.
        #[arg(long)]
        file: Option<PathBuf>,
    },
    /// Forward bytes both ways.
    LimitProxy {
        address: SocketAddr,
        upstream: SocketAddr,
    },
    /// Write every line that is read.
    LimitEcho,
    /// Forward the bodies of HTTP requests as lines to a server on stdio.
    LimitLines {
        address: SocketAddr,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Use CPU time for one minute.
    Neighbour,
    /// Serve many tools.
    ManyTools { address: SocketAddr, tools: usize },
    /// Run a program pinned to one core.
    OnCore {
        core: usize,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// Runs the command.
pub fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Report {
            figures,
            folder,
            causes,
            second,
        } => {
            let notes = Notes::read(causes.as_deref(), second.as_deref())?;
            Report::read(&figures)?.write(&folder, &notes)
        }
        Command::Compare { first, second } => {
            let (first, second) = (Report::read(&first)?, Report::read(&second)?);
            compare(&first.results, &second.results).print();
            Ok(())
        }
        Command::Growth(arguments) => growth::run(&arguments),
        Command::GrowthUpstream { tools } => growth::serve_upstream(tools),
        Command::Drive(arguments) => drive::run(&arguments),
        Command::LimitHttp { address, file } => limit::http::serve(address, file.as_deref()),
        Command::LimitProxy { address, upstream } => limit::proxy::serve(address, upstream),
        Command::LimitEcho => Ok(limit::echo::run()?),
        Command::LimitLines { address, command } => limit::lines::serve(address, &command),
        Command::Neighbour => {
            neighbour::run();
            Ok(())
        }
        Command::ManyTools { address, tools } => many_tools::serve(address, tools),
        Command::OnCore { core, command } => {
            let mut command = command.into_iter();
            let program = Program {
                path: command.next().unwrap_or_default().into(),
                arguments: command.collect(),
                environment: Vec::new(),
            };
            Err(program.become_on(core))
        }
    }
}
