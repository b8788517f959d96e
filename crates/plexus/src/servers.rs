//! `plexus servers`: changes servers of running gateways.

mod file;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use plexus_mcp_config::{Locations, Scope};
use plexus_mcp_core::{Limits, Raw};
use serde::Serialize;

use crate::announce;
use crate::cli::existing_file;
use crate::control::{self, RunningGateway};
use crate::gateway::ServerReport;
use crate::output::{Misuse, as_json, print};
use crate::printable::one_line;
use crate::process_env::locations;
use crate::suggest::{alike, did_you_mean};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Disable a server for now, in every gateway that runs, and enable it again:
    plexus servers toggle git --off
    plexus servers toggle git --on

  Disable it for good:
    plexus servers toggle git --off --save

  Restart it, after its program was changed:
    plexus servers reconnect git

  Replace its definition; gateways apply it at once:
    plexus servers set git '{\"command\": \"mcp-server-git\", \"args\": [\"--repository\", \".\"]}'

To add and remove servers: plexus mcp add, plexus mcp remove. To see them: plexus status.

The exit code is 0 for success, 1 for failure, and 2 for wrong usage.";

/// The longest definition that is read from standard input.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// Arguments of `plexus servers`.
#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    command: ServersCommand,

    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ServersCommand {
    /// Enable or disable a server.
    ///
    /// Its tools, resources and prompts are shown or hidden; its connection stays open. The change
    /// lasts until the gateway ends, unless --save writes it to the file.
    #[command(
        after_help = "Examples:\n  plexus servers toggle git\n  plexus servers toggle git --off --save"
    )]
    Toggle {
        /// Its name.
        name: String,
        /// Enable it. Without --on and --off, the state is inverted.
        #[arg(long, conflicts_with = "off")]
        on: bool,
        /// Disable it.
        #[arg(long)]
        off: bool,
        /// Write the change to the file that defines the server as well.
        #[arg(long)]
        save: bool,
        #[command(flatten)]
        files: ServerFileArgs,
    },
    /// Close a server's connection and open a new one.
    #[command(after_help = "Example:\n  plexus servers reconnect git --json")]
    Reconnect {
        /// Its name.
        name: String,
    },
    /// Replace the definition of a server, in the file that defines it.
    ///
    /// An invalid definition is not written. Running gateways reconnect the server.
    #[command(after_help = "\
Examples:
  plexus servers set git '{\"command\": \"mcp-server-git\"}'
  jq .mcpServers.git backup.json | plexus servers set git -")]
    Set {
        /// Its name.
        name: String,
        /// The definition, as in .mcp.json; - reads it from standard input.
        #[arg(value_name = "JSON")]
        definition: String,
        #[command(flatten)]
        files: ServerFileArgs,
    },
}

/// Arguments that select files with servers.
#[derive(Debug, Args)]
struct ServerFileArgs {
    /// Look for the server in this file first, which has the format of .mcp.json.
    ///
    /// The files of a gateway that runs with --mcp-config are known. This option may be repeated.
    #[arg(long, value_name = "FILE", value_parser = existing_file())]
    mcp_config: Vec<PathBuf>,
}

/// The result.
#[derive(Serialize)]
struct Done<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    /// The process ids of the changed gateways.
    gateways: Vec<u32>,
    /// The changed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// Gateways that could not be changed, by process id, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    errors: BTreeMap<u32, String>,
}

/// A running gateway that has the server.
struct Holder {
    gateway: RunningGateway,
    enabled: bool,
    /// The file that defines the server, if the gateway was started with it.
    named_file: Option<PathBuf>,
}

impl Holder {
    fn new(gateway: RunningGateway, server: &ServerReport) -> Self {
        let is_named = server.scope.as_deref() == Some(Scope::Explicit.as_str());
        Self {
            gateway,
            enabled: server.enabled,
            named_file: server.file.clone().filter(|_| is_named),
        }
    }
}

/// Runs `plexus servers`.
pub(crate) fn run(arguments: &ServersArgs) -> anyhow::Result<ExitCode> {
    let (done, what) = match &arguments.command {
        ServersCommand::Toggle {
            name,
            on,
            off,
            save,
            files,
        } => {
            let wanted = match (on, off) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            };
            toggle(name, wanted, *save, &files.mcp_config)?
        }
        ServersCommand::Reconnect { name } => {
            let holders = holders(name, "plexus serve starts one")?;
            let mut done = Done::new(name);
            for Holder { gateway, .. } in &holders {
                done.note(gateway, gateway.reconnect(name));
            }
            (done, "reconnected")
        }
        ServersCommand::Set {
            name,
            definition,
            files,
        } => (set(name, definition, &files.mcp_config)?, "replaced"),
    };
    done.finish(what, arguments.json)
}

fn toggle<'a>(
    name: &'a str,
    wanted: Option<bool>,
    save: bool,
    files: &[PathBuf],
) -> anyhow::Result<(Done<'a>, &'static str)> {
    let tip = "plexus serve starts one, and --save changes the file for the next";
    let holders = match holders(name, tip) {
        Ok(holders) => holders,
        // With --save, the file is changed even if no gateway is running.
        Err(_) if save => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut done = Done::new(name);
    let locations = file_locations(files, &holders)?;
    let enabled = match (wanted, holders.first()) {
        (Some(wanted), _) => wanted,
        (None, Some(holder)) => !holder.enabled,
        (None, None) => !file::is_enabled(&locations, name)?,
    };
    if save {
        done.file = Some(file::enable(&locations, name, enabled)?);
    }
    for Holder { gateway, .. } in &holders {
        done.note(gateway, gateway.toggle(name, enabled));
    }
    done.enabled = Some(enabled);
    Ok((done, if enabled { "enabled" } else { "disabled" }))
}

fn set<'a>(name: &'a str, definition: &str, files: &[PathBuf]) -> anyhow::Result<Done<'a>> {
    let text = if definition == "-" {
        let mut read = String::new();
        let mut input = io::stdin().lock().take(MAX_INPUT_BYTES);
        input
            .read_to_string(&mut read)
            .context("cannot read the definition")?;
        read
    } else {
        definition.to_owned()
    };
    let definition = Raw::parse(text.into(), &Limits::default())
        .map_err(|error| Misuse(format!("the definition is not JSON: {error}")))?;
    let mut done = Done::new(name);
    // Without a gateway that has the server, only the files that every gateway reads may define it.
    let holders = holders(name, "").unwrap_or_default();
    let locations = file_locations(files, &holders)?;
    done.file = Some(file::replace(&locations, name, &definition)?);
    for gateway in control::running() {
        match gateway.reload() {
            Ok(reloaded) => match reloaded.errors.get(name) {
                Some(error) => drop(done.errors.insert(gateway.pid(), error.clone())),
                // The gateway may have noticed the changed file before this request.
                None => done.gateways.push(gateway.pid()),
            },
            Err(error) => drop(done.errors.insert(gateway.pid(), format!("{error:#}"))),
        }
    }
    Ok(done)
}

/// The files that may define the server: those named here, those that its gateways were started
/// with, and those that every gateway reads.
fn file_locations(files: &[PathBuf], holders: &[Holder]) -> anyhow::Result<Locations> {
    let mut locations = locations()?;
    let named = holders
        .iter()
        .filter_map(|holder| holder.named_file.clone());
    // A later one has precedence.
    locations.explicit = named.chain(files.iter().cloned()).collect();
    Ok(locations)
}

/// The gateways that have a server of this name. `tip` is for users without a gateway.
///
/// # Errors
/// There is none.
fn holders(name: &str, tip: &str) -> anyhow::Result<Vec<Holder>> {
    let gateways = control::running();
    if gateways.is_empty() {
        bail!("no gateway is running\n\n  tip: {tip}");
    }
    let mut names = Vec::new();
    let mut holders = Vec::new();
    for gateway in gateways {
        match gateway.status() {
            Ok(report) => {
                let server = report.servers.iter().find(|server| server.name == name);
                names.extend(report.servers.iter().map(|server| server.name.clone()));
                holders.extend(server.map(|server| Holder::new(gateway, server)));
            }
            Err(error) => announce::problem(&format!("{error:#}")),
        }
    }
    if holders.is_empty() {
        let hint = did_you_mean(&alike(name, names.iter().map(String::as_str)));
        bail!("no gateway has a server {name:?}{hint}\n\n  tip: 'plexus status' shows all servers");
    }
    Ok(holders)
}

impl<'a> Done<'a> {
    fn new(server: &'a str) -> Self {
        Self {
            server,
            enabled: None,
            gateways: Vec::new(),
            file: None,
            errors: BTreeMap::new(),
        }
    }

    fn note(&mut self, gateway: &RunningGateway, done: anyhow::Result<()>) {
        match done {
            Ok(()) => self.gateways.push(gateway.pid()),
            Err(error) => drop(self.errors.insert(gateway.pid(), format!("{error:#}"))),
        }
    }

    fn finish(self, what: &str, json: bool) -> anyhow::Result<ExitCode> {
        let name = one_line(self.server);
        let gateways = self.gateways.iter().map(|pid| format!("gateway {pid}"));
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let places: Vec<_> = gateways.chain(file).collect();
        if json {
            print(&as_json(&self)?)?;
        } else if !places.is_empty() {
            let places = one_line(&places.join(", "));
            print(format!("{what} {name} in {places}\n"))?;
        }
        for (pid, error) in &self.errors {
            announce::refusal(&format!("gateway {pid}: {error}"));
        }
        Ok(if self.errors.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
