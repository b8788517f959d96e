//! Parses the command line.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::{Cli, Command};

impl Cli {
    /// Parses the command line and, for the log level, the environment.
    ///
    /// # Errors
    /// The text to print instead of running a command: a usage error, help, or the version.
    pub(crate) fn read() -> Result<Command, clap::Error> {
        Self::read_from(std::env::args_os().collect())
    }

    pub(super) fn read_from(arguments: Vec<OsString>) -> Result<Command, clap::Error> {
        Self::try_parse_from(arguments)?.into_command()
    }

    /// The meaning of `--stdio` without a command, as the S003 document has it: serve, with all
    /// built-in services.
    fn serve_all_builtins(further: &[&str]) -> Result<Command, clap::Error> {
        let serve = ["plexus", "serve", "--stdio", "--builtin", "all"];
        Self::try_parse_from(serve.iter().chain(further))?.into_command()
    }

    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        let usage = |kind, message: &str| Self::command().error(kind, message);
        match (self.command, self.stdio, self.mcp) {
            (Some(_), true, _) => Err(usage(
                ErrorKind::ArgumentConflict,
                "a command takes its options after its name: plexus serve --stdio",
            )),
            (Some(Command::Serve(arguments)), ..) => {
                arguments.downstream.check("serve")?;
                Ok(Command::Serve(arguments))
            }
            (Some(Command::Bridge(arguments)), ..) => {
                arguments.downstream.check("bridge")?;
                Ok(Command::Bridge(arguments))
            }
            (Some(Command::Probe(arguments)), ..) => {
                arguments.check()?;
                Ok(Command::Probe(arguments))
            }
            (Some(Command::Mcp(arguments)), ..) => {
                arguments.check()?;
                Ok(Command::Mcp(arguments))
            }
            (Some(command), ..) => Ok(command),
            (None, true, true) => Self::serve_all_builtins(&[]),
            // S003-58
            (None, true, false) => Self::serve_all_builtins(&["--native"]),
            (None, false, _) => Err(usage(
                ErrorKind::MissingSubcommand,
                "a command is missing; to serve MCP, use: plexus serve",
            )),
        }
    }
}
