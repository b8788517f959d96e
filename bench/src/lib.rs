//! Measures Plexus, its rivals and the limits of the machine with one load generator.
//!
//! Processes are put on cores and watched in ways that only Linux has; elsewhere there is nothing
//! in here.

#![cfg(target_os = "linux")]

mod about;
mod acceptance;
mod answer;
mod bench;
mod drive;
mod gateways;
mod histogram;
mod limit;
mod load;
mod many_tools;
mod message;
mod part;
mod process;
mod report;
mod results;
mod run;
mod servers;
mod stage;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use drive::DriveArgs;
use process::Program;
use report::Report;
use run::RunArgs;

/// Measures Plexus, its rivals and the limits of the machine with one load generator.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, and report.
    Run(RunArgs),
    /// Write the report of a run that was saved.
    Report {
        /// The figures of the run.
        figures: PathBuf,
        /// Where to write the report.
        folder: PathBuf,
    },
    /// Put load on a server that runs already, to look into it with a profiler meanwhile.
    Drive(DriveArgs),
    /// Answer every HTTP request with a fixed body.
    LimitHttp {
        address: SocketAddr,
        /// What /file answers with.
        #[arg(long)]
        file: Option<PathBuf>,
    },
    /// Pass bytes on, both ways.
    LimitProxy {
        address: SocketAddr,
        upstream: SocketAddr,
    },
    /// Write the lines that are read.
    LimitEcho,
    /// Serve many tools that all say back what they are told.
    ManyTools { address: SocketAddr, tools: usize },
    /// Become a program that stays on one core.
    OnCore {
        core: usize,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// Does what the command line says.
pub fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Report { figures, folder } => Report::read(&figures)?.write(&folder),
        Command::Drive(arguments) => drive::run(&arguments),
        Command::LimitHttp { address, file } => limit::http::serve(address, file.as_deref()),
        Command::LimitProxy { address, upstream } => limit::proxy::serve(address, upstream),
        Command::LimitEcho => Ok(limit::echo::run()?),
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
