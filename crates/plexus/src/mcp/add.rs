//! The arguments of `plexus mcp add`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use plexus_mcp_core::Raw;
use serde::Serialize;

use super::ScopeName;
use crate::cli::usage_error;
use crate::named;

pub(super) const EXAMPLES: &str = "\
Examples:
  plexus mcp add git -- mcp-server-git --repository .
  plexus mcp add memory -e MEMORY_FILE_PATH=/tmp/memory.json -- npx -y @modelcontextprotocol/server-memory
  plexus mcp add --scope user github https://example.com/mcp -H 'Authorization: Bearer ${TOKEN}'
  plexus mcp add --scope project --transport sse old https://example.com/sse";

/// Arguments of `plexus mcp add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The name of the server.
    pub(super) name: String,

    /// The server: its URL, or after -- the program to start with its arguments.
    #[arg(required = true, value_name = "URL | -- COMMAND")]
    server: Vec<String>,

    /// The scope, which selects the file to add it to.
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) scope: ScopeName,

    /// The transport; by default stdio for a program and http for a URL.
    #[arg(short, long, value_enum)]
    transport: Option<Transport>,

    /// Set this environment variable for the program.
    ///
    /// ${NAME} in the value is replaced by the variable NAME when the server is started, so that a
    /// secret need not be written to the file. This option may be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Send this header with every request to the URL.
    ///
    /// ${NAME} in the value is replaced by the variable NAME when the server is connected. This
    /// option may be repeated.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
}

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Standard input and output of a program.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the HTTP transport of 2024-11-05.
    Sse,
}

/// A definition as a file has it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ServerDefinition<'a> {
    Stdio {
        command: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        args: &'a [String],
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<&'a str, &'a str>,
    },
    Http(Endpoint<'a>),
    Sse(Endpoint<'a>),
}

#[derive(Serialize)]
struct Endpoint<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'a str, &'a str>,
}

impl AddArgs {
    /// Rejects combinations of arguments that are valid only alone.
    ///
    /// # Errors
    /// The usage error.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        match self.parsed_definition() {
            Ok(_) => Ok(()),
            Err(wrong) => Err(usage_error(&["mcp", "add"], wrong)),
        }
    }

    /// The definition to write.
    ///
    /// # Errors
    /// The arguments contradict each other; see [`check`](Self::check).
    pub(super) fn definition(&self) -> anyhow::Result<Raw> {
        let parsed_definition = self
            .parsed_definition()
            .map_err(|wrong| anyhow!("{wrong}"))?;
        Ok(Raw::encode(&parsed_definition)?)
    }

    /// Errors do not contain the values, which may be secrets.
    fn parsed_definition(&self) -> Result<ServerDefinition<'_>, Cow<'static, str>> {
        let (first, rest) = self.server.split_first().ok_or("no server is named")?;
        let transport = match self.transport {
            Some(transport) => transport,
            None if named::is_address(first) => Transport::Http,
            None => Transport::Stdio,
        };
        if transport == Transport::Stdio {
            if named::is_address(first) {
                return Err("--transport stdio needs a program, but this is a URL".into());
            }
            if let Some(why) = named::unusable_url(first) {
                return Err(why.into());
            }
            if !self.header.is_empty() {
                return Err("--header is for HTTP, but the server is a program; use --env".into());
            }
            let env = pairs(&self.env, '=', "--env is written as NAME=value")?;
            return Ok(ServerDefinition::Stdio {
                command: first,
                args: rest,
                env,
            });
        }
        // The URL may begin with a variable.
        if !named::is_address(first) && !first.starts_with("${") {
            let why = named::unusable_url(first);
            let needed = "--transport http and sse need a URL: https://example.com/mcp";
            return Err(why.map_or(needed.into(), Cow::Owned));
        }
        if !rest.is_empty() {
            return Err("a URL takes no arguments".into());
        }
        if !self.env.is_empty() {
            return Err("--env is for programs, but the server is a URL; use --header".into());
        }
        let headers = pairs(&self.header, ':', "--header is written as 'Name: value'")?;
        let endpoint = Endpoint {
            url: first,
            headers,
        };
        Ok(match transport {
            Transport::Sse => ServerDefinition::Sse(endpoint),
            Transport::Http | Transport::Stdio => ServerDefinition::Http(endpoint),
        })
    }
}

/// Names and values; of two with the same name, the later is used.
fn pairs<'a>(
    parsed_definition: &'a [String],
    separator: char,
    wrong: &'static str,
) -> Result<BTreeMap<&'a str, &'a str>, &'static str> {
    let pair = |text: &'a String| {
        let (name, value) = text.split_once(separator)?;
        let (name, value) = match separator {
            ':' => (name.trim(), value.trim()),
            _ => (name, value),
        };
        (!name.is_empty()).then_some((name, value))
    };
    let pairs = parsed_definition.iter().map(pair).collect::<Option<_>>();
    pairs.ok_or(wrong)
}
