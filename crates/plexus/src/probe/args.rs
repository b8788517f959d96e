//! The arguments of `plexus probe`.

use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue};
use plexus_mcp_client::{Definition, Era};

use crate::cli::{parse_header, server_era, usage_error};
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

/// Arguments of `plexus probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Print one JSON object instead of text.
    ///
    /// Later versions may add members, but do not change or remove them.
    #[arg(long)]
    pub(crate) json: bool,

    /// Send this header with every request to the server.
    ///
    /// ${NAME} is replaced by the environment variable NAME, so that a secret need not be written
    /// here. Values are never printed. This option may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    header: Vec<(HeaderName, HeaderValue)>,

    /// The era to speak; detected by default.
    #[arg(long, value_parser = server_era(), value_name = "ERA")]
    era: Option<Era>,

    /// Give the server this many seconds to connect, and to answer each request.
    #[arg(long, value_name = "SECONDS", default_value = "30",
        value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,

    /// The server: its URL, or the program to start with its arguments.
    ///
    /// Options of this command come first: everything after the server belongs to the server.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "URL | COMMAND"
    )]
    server: Vec<String>,
}

impl ProbeArgs {
    /// Rejects combinations of arguments that are valid only alone.
    ///
    /// # Errors
    /// The usage error.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        let usage = |message: String| usage_error(&["probe"], message);
        let is_address = self
            .server
            .first()
            .is_some_and(|word| named::is_address(word));
        if !is_address && !self.header.is_empty() {
            let message = "--header is for HTTP, but the server is a program";
            return Err(usage(message.to_owned()));
        }
        self.definition()
            .map(drop)
            .map_err(|error| usage(format!("{error:#}")))
    }

    /// The definition of the server.
    ///
    /// # Errors
    /// The arguments name no server.
    pub(super) fn definition(&self) -> anyhow::Result<Definition> {
        let mut definition = named::definition(&self.server, &self.header, self.era, None)?;
        let timeout = Duration::from_secs(self.timeout.into());
        let timeouts = &mut definition.timeouts;
        timeouts.connect = timeout;
        timeouts.request = timeout;
        timeouts.probe = timeouts.probe.min(timeout);
        Ok(definition)
    }
}
