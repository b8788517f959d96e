//! The `plexus` command: reads what is asked for, starts it, and says how it ended.

mod access;
mod announce;
mod arguments;
mod asking;
mod auth;
mod backup;
mod bridge;
mod call;
mod cli;
mod content;
mod control;
mod conversation;
mod data;
mod doctor;
mod explain;
mod extras;
mod gateway;
mod health;
mod import;
mod live;
mod logs;
mod man;
mod mcp;
mod memory;
mod named;
mod output;
mod probe;
mod prompts;
mod resources;
mod serve;
mod servers;
mod session;
mod signals;
mod status;
mod suggest;
mod surroundings;
mod task;
mod terminal;
mod token;
mod tools;
mod trust;

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
        Ok(Command::Tools(arguments)) => tools::run(&arguments),
        Ok(Command::Call(arguments)) => call::run(&arguments),
        Ok(Command::Resources(arguments)) => resources::list(&arguments),
        Ok(Command::Read(arguments)) => resources::read(&arguments),
        Ok(Command::Subscribe(arguments)) => resources::subscribe(&arguments),
        Ok(Command::Prompts(arguments)) => prompts::list(&arguments),
        Ok(Command::Prompt(arguments)) => prompts::get(&arguments),
        Ok(Command::Explain(arguments)) => explain::run(&arguments),
        Ok(Command::Status(arguments)) => status::run(&arguments),
        Ok(Command::Servers(arguments)) => servers::run(&arguments),
        Ok(Command::Doctor(arguments)) => doctor::run(&arguments),
        Ok(Command::Probe(arguments)) => probe::run(&arguments),
        Ok(Command::Mcp(arguments)) => mcp::run(&arguments),
        Ok(Command::Auth(arguments)) => auth::run(&arguments),
        Ok(Command::Token(arguments)) => token::run(&arguments),
        Ok(Command::Import(arguments)) => import::run(&arguments),
        Ok(Command::Trust(arguments)) => trust::run(&arguments),
        Ok(Command::Task(arguments)) => task::run(arguments),
        Ok(Command::Memory(arguments)) => memory::run(arguments),
        Ok(Command::Backup(arguments)) => backup::run(arguments),
        Ok(Command::Man(arguments)) => man::run(&arguments, Cli::command()),
        Ok(Command::Completions { shell }) => completions(shell),
        Err(usage) => {
            // Help and version come this way too. Whoever closed the pipe has read enough.
            drop(usage.print());
            return u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    ended.unwrap_or_else(|error| {
        announce::failure(&error);
        if error.is::<output::Misuse>() {
            ExitCode::from(2)
        } else {
            ExitCode::FAILURE
        }
    })
}

fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plexus", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
