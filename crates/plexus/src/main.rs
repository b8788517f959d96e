//! The `plexus` command: parses the command line, runs the command, and prints errors.

mod access;
mod ad_hoc;
mod announce;
mod arguments;

mod auth;
mod backup;
mod bridge;
mod call;
mod cli;
mod config;
mod content;
mod control;
mod conversation;
mod data;
mod doctor;
mod explain;
mod extras;
mod gateway;
mod health;
mod healthcheck;
mod import;
mod keyring;
mod limits;
mod live;
mod logs;
mod man;
mod mcp;
mod memory;
mod named;
mod output;
mod printable;
mod probe;
mod process_env;
mod prompts;
mod resources;
mod run;
mod runtime;
mod serve;
mod serve_chain;
mod servers;
mod session;
mod setup;
mod signals;
mod status;
mod suggest;

mod task;
mod terminal;
mod terminal_prompts;
mod token;
mod tools;
mod trust;
mod words;

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use cli::{Cli, Command};

/// Returns freed memory to the system, which the allocator of glibc keeps after a load.
#[cfg(not(windows))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let ended = match Cli::read() {
        Ok(command) => run(command),
        Err(usage) => {
            // Help and version come this way as well. A closed pipe is not an error.
            drop(usage.print());
            return u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    ended.unwrap_or_else(|error| {
        announce::failure(&error);
        if error.is::<output::Misuse>() {
            ExitCode::from(2)
        } else if error.is::<output::ConsentNeeded>() {
            ExitCode::from(output::ConsentNeeded::EXIT_CODE)
        } else {
            ExitCode::FAILURE
        }
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bridge(arguments) => bridge::run(&arguments),
        Command::Tools(arguments) => tools::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Resources(arguments) => resources::list(&arguments),
        Command::Read(arguments) => resources::read(&arguments),
        Command::Subscribe(arguments) => resources::subscribe(&arguments),
        Command::Prompts(arguments) => prompts::list(&arguments),
        Command::Prompt(arguments) => prompts::get(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Servers(arguments) => servers::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Auth(arguments) => auth::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Task(arguments) => task::run(arguments),
        Command::Memory(arguments) => memory::run(arguments),
        Command::Backup(arguments) => backup::run(arguments),
        Command::Healthcheck(arguments) => healthcheck::run(&arguments),
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
        Command::Completions { shell } => completions(shell),
    }
}

fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plexus", &mut script);
    output::print(String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
