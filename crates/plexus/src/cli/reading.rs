//! Parses the command line.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser};

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
        // A fast path for the commands that serve: building the description of all commands takes
        // longer than parsing one. Help and usage errors use the whole description.
        let served = match arguments.get(1).and_then(|name| name.to_str()) {
            Some("serve") => only(&arguments).map(Command::Serve),
            Some("bridge") => only(&arguments).map(Command::Bridge),
            _ => None,
        };
        let cli = match served {
            Some(command) => Self::of(command),
            None => Self::try_parse_from(arguments)?,
        };
        cli.into_command()
    }

    fn of(command: Command) -> Self {
        Self {
            command: Some(command),
            stdio: false,
            mcp: false,
        }
    }

    /// The meaning of `--stdio` without a command, as the S003 document has it: serve, with all
    /// built-in services.
    fn founding(further: &[&str]) -> Result<Command, clap::Error> {
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
                arguments.downstream.check()?;
                Ok(Command::Serve(arguments))
            }
            (Some(Command::Bridge(arguments)), ..) => {
                arguments.downstream.check()?;
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
            (None, true, true) => Self::founding(&[]),
            // S003-58
            (None, true, false) => Self::founding(&["--native"]),
            (None, false, _) => Err(usage(
                ErrorKind::MissingSubcommand,
                "a command is missing; to serve MCP, use: plexus serve",
            )),
        }
    }
}

/// Parses the arguments of a command; `None` if they are wrong.
fn only<A: Args>(arguments: &[OsString]) -> Option<A> {
    let command = clap::Command::new("plexus").no_binary_name(true);
    let command = A::augment_args(command);
    let matches = command.try_get_matches_from(arguments.iter().skip(2));
    A::from_arg_matches(&matches.ok()?).ok()
}
