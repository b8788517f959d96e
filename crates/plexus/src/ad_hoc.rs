//! `--server` of commands that use servers: a configured server by its name, or any other by its
//! URL or command.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use clap::Args;
use plexus_mcp_config::{self as config, Loaded, Scope, ServerEntry, Source};
use plexus_mcp_core::Raw;
use plexus_mcp_hub::manage;
use serde_json::json;

use crate::doctor::is_in_path;
use crate::output::Misuse;
use crate::process_env::{environment, locations};
use crate::session::{BUILTIN, ConfigArgs};
use crate::{named, words};

/// What stands for the file of a server that is in no file.
const PLACE: &str = "--server";
/// Programs that start the package which their arguments name.
const LAUNCHERS: [&str; 3] = ["npx", "uvx", "bunx"];

/// Arguments that select configuration files, and one server or all.
#[derive(Debug, Args)]
pub(crate) struct ServerChoiceArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Use this server, and no other: its name, if it is configured, or its URL or command.
    ///
    /// A command is one argument, which is split into words as by a shell: --server 'npx -y
    /// @modelcontextprotocol/server-memory'. A server that is not configured is used for this
    /// command only, and its tools have their own names. ${NAME} is replaced by the environment
    /// variable NAME.
    #[arg(long, value_name = "NAME | URL | COMMAND")]
    server: Option<String>,

    /// Send this header with every request to the URL of --server.
    ///
    /// ${NAME} is replaced by the environment variable NAME, so that a secret need not be written
    /// here. This option may be repeated.
    #[arg(long, value_name = "NAME: VALUE", requires = "server")]
    header: Vec<String>,
}

/// The server that a command uses.
pub(crate) enum ServerChoice {
    /// Every configured one.
    All,
    /// A configured one, by its name; whether there is one is not known yet.
    Named(String),
    /// One that is in no file.
    AdHoc(Box<ServerEntry>),
}

impl ServerChoiceArgs {
    /// The server.
    ///
    /// # Errors
    /// It is none, for example because a quote is not closed.
    pub(crate) fn choice(&self) -> anyhow::Result<ServerChoice> {
        let Some(server) = &self.server else {
            return Ok(ServerChoice::All);
        };
        if *server == BUILTIN || self.is_configured(server)? {
            if !self.header.is_empty() {
                bail!(Misuse(format!(
                    "--header is for a URL; the headers of {server:?} are in its definition"
                )));
            }
            return Ok(ServerChoice::Named(server.clone()));
        }
        let words = words::split(server).map_err(|wrong| Misuse(format!("--server: {wrong}")))?;
        let (first, rest) = match words.as_slice() {
            [] => bail!(Misuse("--server is empty".to_owned())),
            // Probably the name of a server, with a typing error.
            [only] if is_bare(only) && !is_in_path(only) => {
                return Ok(ServerChoice::Named(only.clone()));
            }
            [first, rest @ ..] => (first, rest),
        };
        let definition = if named::is_address(first) {
            if !rest.is_empty() {
                bail!(Misuse("--server: a URL takes no arguments".to_owned()));
            }
            json!({ "type": "http", "url": first, "headers": self.headers()? })
        } else if let Some(why) = named::unusable_url(first) {
            bail!(Misuse(format!("--server: {why}")));
        } else if !self.header.is_empty() {
            let wrong = "--header is for HTTP, but the server is a program";
            bail!(Misuse(wrong.to_owned()));
        } else {
            json!({ "type": "stdio", "command": first, "args": rest })
        };
        let (name, definition) = (name(first, rest), Raw::encode(&definition)?);
        let source = Source::new(Scope::Explicit, PLACE);
        let entry = config::check(&name, &definition, &source, &locations()?, &environment);
        Ok(ServerChoice::AdHoc(Box::new(entry?)))
    }

    /// Whether a file defines a server of this name, in whatever way.
    fn is_configured(&self, name: &str) -> anyhow::Result<bool> {
        let mut locations = locations()?;
        locations.explicit.clone_from(&self.config.mcp_config);
        let Loaded {
            servers, problems, ..
        } = config::load(&locations, &environment);
        let has_problem = problems
            .iter()
            .any(|problem| problem.server.as_deref() == Some(name));
        Ok(has_problem || servers.iter().any(|server| server.name == name))
    }

    fn headers(&self) -> Result<BTreeMap<&str, &str>, Misuse> {
        let headers = self.header.iter().map(|header| {
            let (name, value) = header.split_once(':')?;
            Some((name.trim(), value.trim()))
        });
        let headers = headers.collect::<Option<_>>();
        headers.ok_or_else(|| Misuse("--header is written as 'Name: value'".to_owned()))
    }
}

/// Whether it may be the name of a server, or of a program in PATH.
fn is_bare(word: &str) -> bool {
    !named::is_address(word) && named::unusable_url(word).is_none() && !word.contains(['/', '\\'])
}

/// A name for a server without one, for messages: the host of its URL, or its program.
fn name(first: &str, rest: &[String]) -> String {
    let url = first.parse::<http::Uri>().ok();
    let host = url.as_ref().and_then(http::Uri::host);
    let program = Path::new(first).file_stem().and_then(|name| name.to_str());
    let program = program.unwrap_or(first);
    let package = rest.iter().find(|word| !word.starts_with('-'));
    let package = package.filter(|_| LAUNCHERS.contains(&program));
    let package = package.and_then(|package| package.rsplit('/').next());
    let is_url = named::is_address(first);
    let name = host.filter(|_| is_url).or(package).unwrap_or(program);
    if name.is_empty() || [BUILTIN, manage::NAME].contains(&name) {
        "server".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_short_name() {
        for (words, expected) in [
            (&["https://example.com:8/mcp"][..], "example.com"),
            (&["npx", "-y", "@scope/server-memory"], "server-memory"),
            (&["uvx", "mcp-server-git"], "mcp-server-git"),
            (&["/usr/bin/server.py", "x"], "server"),
            (&["npx"], "npx"),
            (&["./plexus", "serve"], "server"),
        ] {
            let (first, rest) = words.split_first().unwrap();
            let rest: Vec<_> = rest.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(name(first, &rest), expected, "{words:?}");
        }
    }
}
