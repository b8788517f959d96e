//! The arguments of `plexus mcp add`.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use plexus_service::Raw;
use serde::Serialize;

use super::ScopeName;
use crate::cli::Cli;
use crate::named;

pub(super) const EXAMPLES: &str = "\
Examples:
  plexus mcp add git -- mcp-server-git --repository .
  plexus mcp add memory -e MEMORY_FILE=memory.json -- npx -y @modelcontextprotocol/server-memory
  plexus mcp add --scope user github https://example.com/mcp -H 'Authorization: Bearer ${TOKEN}'
  plexus mcp add --scope project --transport sse old https://example.com/sse";

/// The server to add.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// What to call it.
    pub(super) name: String,

    /// The server: its address, or after -- the program to start with its arguments.
    #[arg(required = true, value_name = "URL | -- COMMAND")]
    server: Vec<String>,

    /// Whose file to add it to.
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) scope: ScopeName,

    /// What it speaks; if it is not said, a program speaks stdio and an address http.
    #[arg(short, long, value_enum)]
    transport: Option<Transport>,

    /// Set this in the environment of the program.
    ///
    /// ${NAME} in the value stands for what the variable NAME holds when the server is started, so
    /// that a secret need not be written to the file. This may be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Send this header with every request to the address.
    ///
    /// ${NAME} in the value stands for what the variable NAME holds when the server is connected.
    /// This may be repeated.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// A program's standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the HTTP of 2024-11-05.
    Sse,
}

/// A definition as a file has it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Written<'a> {
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
    /// Refuses what each argument allows but all together do not.
    ///
    /// # Errors
    /// What to tell about the wrong usage.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        match self.written() {
            Ok(_) => Ok(()),
            Err(wrong) => Err(Cli::command().error(ErrorKind::ArgumentConflict, wrong)),
        }
    }

    /// The definition to write.
    ///
    /// # Errors
    /// The arguments do not fit together, as [`check`](Self::check) would say.
    pub(super) fn definition(&self) -> anyhow::Result<Raw> {
        let written = self.written().map_err(|wrong| anyhow!(wrong))?;
        Ok(Raw::encode(&written)?)
    }

    /// What is wrong is said without the values, which may be secrets.
    fn written(&self) -> Result<Written<'_>, &'static str> {
        let (first, rest) = self.server.split_first().ok_or("no server is named")?;
        let transport = match self.transport {
            Some(transport) => transport,
            None if named::is_address(first) => Transport::Http,
            None => Transport::Stdio,
        };
        if transport == Transport::Stdio {
            if named::is_address(first) {
                return Err("--transport stdio needs a program, but this is an address");
            }
            if !self.header.is_empty() {
                return Err("--header is about HTTP, but the server is a program; use --env");
            }
            let env = pairs(&self.env, '=', "--env is written as NAME=value")?;
            return Ok(Written::Stdio {
                command: first,
                args: rest,
                env,
            });
        }
        // The address may begin with a variable.
        if !named::is_address(first) && !first.starts_with("${") {
            return Err("--transport http and sse need an address: https://example.com/mcp");
        }
        if !rest.is_empty() {
            return Err("an address takes no arguments");
        }
        if !self.env.is_empty() {
            return Err("--env is about programs, but the server is an address; use --header");
        }
        let headers = pairs(&self.header, ':', "--header is written as 'Name: value'")?;
        let endpoint = Endpoint {
            url: first,
            headers,
        };
        Ok(match transport {
            Transport::Sse => Written::Sse(endpoint),
            Transport::Http | Transport::Stdio => Written::Http(endpoint),
        })
    }
}

/// Names and values; of two with one name, the later counts.
fn pairs<'a>(
    written: &'a [String],
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
    let pairs = written.iter().map(pair).collect::<Option<_>>();
    pairs.ok_or(wrong)
}
