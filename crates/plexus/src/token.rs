//! `plexus token`: tokens for clients of `plexus serve --http`, where there is no authorization
//! server.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use plexus_mcp_access::TokenEntry;
use serde::Serialize;

use crate::access;
use crate::announce;
use crate::output::{as_json, print};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Create a token for a laptop, and use it in a client:
    plexus token add laptop
    claude mcp add --transport http plexus https://plexus.example.com/mcp \\
      --header 'Authorization: Bearer TOKEN'

  Create one for a script that may only read, by the rules in plexus.toml:
    TOKEN=$(plexus token add ci --scope files:read)

  List the tokens, and revoke one:
    plexus token list
    plexus token remove laptop

A token is shown once; only a hash of it is stored. A client with the token called laptop is the
principal token:laptop. Running gateways apply the change at once.";

/// Arguments of `plexus token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token, and print it. It cannot be printed again.
    Add {
        /// The name of the client or user that gets the token.
        name: String,
        /// Give the token this scope; by default, the scopes that the settings require.
        ///
        /// This option may be repeated.
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// List the names of the tokens. The tokens themselves are not stored.
    List {
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token.
    Remove {
        /// The name of the token.
        name: String,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    token: &'a str,
    scopes: &'a [String],
}

#[derive(Serialize)]
struct TokensOutput<'a> {
    tokens: Vec<Token<'a>>,
}

#[derive(Serialize)]
struct Token<'a> {
    name: &'a str,
    scopes: &'a [String],
    /// Seconds since 1970.
    created: u64,
}

#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
}

/// Runs `plexus token`.
pub(crate) fn run(arguments: &TokenArgs) -> anyhow::Result<ExitCode> {
    let tokens = access::tokens()?;
    match &arguments.command {
        TokenCommand::Add { name, scope, json } => {
            let scopes = if scope.is_empty() {
                access::needed_scopes()?
            } else {
                scope.clone()
            };
            let made = tokens.add(name, &scopes)?;
            let token = made.token.expose();
            if *json {
                let scopes = &scopes;
                print(&as_json(&Added {
                    name,
                    token,
                    scopes,
                })?)?;
            } else {
                print(format!("{token}\n"))?;
                announce::token_made(name);
            }
        }
        TokenCommand::List { json } => {
            let entries = tokens.list()?;
            print(&if *json {
                let tokens = entries.iter().map(|entry| Token {
                    name: &entry.name,
                    scopes: &entry.scopes,
                    created: entry.created,
                });
                let tokens = tokens.collect();
                as_json(&TokensOutput { tokens })?
            } else {
                table(&entries)
            })?;
        }
        TokenCommand::Remove { name, json } => {
            tokens.remove(name)?;
            print(&if *json {
                as_json(&Removed { removed: name })?
            } else {
                format!("the token {name} is revoked\n")
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[TokenEntry]) -> String {
    if entries.is_empty() {
        return "there are no tokens; to create one: plexus token add NAME\n".to_owned();
    }
    let width = entries.iter().map(|entry| entry.name.len()).max();
    let width = width.unwrap_or_default();
    let line = |entry: &TokenEntry| {
        let made = i64::try_from(entry.created).ok();
        let made = made.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let made = made.map(|time| time.strftime("%Y-%m-%d").to_string());
        let made = made.unwrap_or_default();
        let line = format!("{:width$}  {made}  {}", entry.name, entry.scopes.join(" "));
        format!("{}\n", line.trim_end())
    };
    entries.iter().map(line).collect()
}
