//! The `plexus` command: reads what is asked for, starts it, and says how it ended.

mod announce;
mod auth;
mod bridge;
mod cli;
mod data;
mod gateway;
mod import;
mod logs;
mod mcp;
mod memory;
mod named;
mod probe;
mod serve;
mod signals;
mod task;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use cli::{Cli, Command};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let ended = match Cli::read() {
        Ok(Command::Serve(arguments)) => {
            logs::start(arguments.downstream.log_level);
            serve::run(&arguments)
        }
        Ok(Command::Bridge(arguments)) => {
            logs::start(arguments.downstream.log_level);
            bridge::run(&arguments)
        }
        Ok(Command::Probe(arguments)) => probe::run(&arguments),
        Ok(Command::Mcp(arguments)) => mcp::run(&arguments),
        Ok(Command::Auth(arguments)) => auth::run(&arguments),
        Ok(Command::Import(arguments)) => import::run(&arguments),
        Ok(Command::Task(arguments)) => task::run(arguments),
        Ok(Command::Memory(arguments)) => memory::run(arguments),
        Ok(Command::Completions { shell }) => completions(shell),
        Err(usage) => {
            // Help and version come this way too. Whoever closed the pipe has read enough.
            drop(usage.print());
            return u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    ended.unwrap_or_else(|error| {
        announce::failure(&error);
        ExitCode::FAILURE
    })
}

fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plexus", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
