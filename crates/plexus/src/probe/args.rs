//! The arguments of `plexus probe`.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use http::{HeaderName, HeaderValue};
use plexus_client::Definition;

use crate::cli::{Cli, ServerEra, parse_header};
use crate::named;

pub(crate) const EXAMPLES: &str = "\
Examples:
  What is behind this command, and why does it not work?
    plexus probe npx -y @modelcontextprotocol/server-memory

  What does this address speak, and how fast is it?
    plexus probe --header 'Authorization: Bearer ${TOKEN}' https://example.com/mcp

  Which tools are not shown, for a script:
    plexus probe --json -- mcp-server-git --repository . | jq '.quarantined'

The exit code is 0 if the server could be connected, 1 if not, and 2 for wrong usage.";

/// Which server is looked at.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Print one JSON object instead of text.
    ///
    /// Members may be added in later versions; those that are there stay.
    #[arg(long)]
    pub(crate) json: bool,

    /// Send this header with every request to the server.
    ///
    /// ${NAME} stands for what the environment variable NAME holds, so that a secret need not be
    /// written here. Values are never printed. This may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    header: Vec<(HeaderName, HeaderValue)>,

    /// The era to speak; found out if it is not said.
    #[arg(long, value_enum, value_name = "ERA")]
    era: Option<ServerEra>,

    /// Give the server this many seconds to connect, and to answer each question.
    #[arg(long, value_name = "SECONDS", default_value = "30",
        value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,

    /// The server: its address, or the program to start with its arguments.
    ///
    /// Options of this command come first: what follows is the server's.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "URL | COMMAND"
    )]
    server: Vec<String>,
}

impl ProbeArgs {
    /// Refuses what each argument allows but all together do not.
    ///
    /// # Errors
    /// What to tell about the wrong usage.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        let usage = |message: String| Cli::command().error(ErrorKind::ArgumentConflict, message);
        let is_address = self
            .server
            .first()
            .is_some_and(|word| named::is_address(word));
        if !is_address && !self.header.is_empty() {
            let message = "--header is about HTTP, but the server is a program";
            return Err(usage(message.to_owned()));
        }
        self.definition()
            .map(drop)
            .map_err(|error| usage(format!("{error:#}")))
    }

    /// The server.
    ///
    /// # Errors
    /// It is not one.
    pub(super) fn definition(&self) -> anyhow::Result<Definition> {
        let era = self.era.map(Into::into);
        let mut definition = named::definition(&self.server, &self.header, era, None)?;
        let patience = Duration::from_secs(self.timeout.into());
        let timeouts = &mut definition.timeouts;
        timeouts.connect = patience;
        timeouts.request = patience;
        timeouts.probe = timeouts.probe.min(patience);
        Ok(definition)
    }
}
